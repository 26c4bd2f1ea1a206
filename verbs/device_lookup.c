/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_lookup.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 512
#define PATTERN_BYTES (PATH_BYTES + 64)

/* The first line of a file; false: it can't be read (an unused GID says EINVAL). */
static bool read_line(const char *path, char *text, int size)
{
    FILE *file = fopen(path, "re");
    bool read = file != NULL && fgets(text, size, file) != NULL;

    if (file != NULL)
        fclose(file);
    if (read)
        text[strcspn(text, "\n")] = '\0';
    return read;
}

static bool holds(const char *path, const char *iface)
{
    char text[64];

    return read_line(path, text, sizeof text) && strcmp(text, iface) == 0;
}

/* ".../infiniband/<device>/ports/<number>/gid_attrs/..." as "<device>/<number>" */
static bool write_name(const char *path, char *name, size_t size)
{
    const char *device = strstr(path, "/infiniband/") + strlen("/infiniband/");
    const char *number = strstr(device, "/ports/") + strlen("/ports/");
    int written = snprintf(name, size, "%.*s/%.*s", (int)strcspn(device, "/"), device,
                           (int)strcspn(number, "/"), number);

    return written > 0 && (size_t)written < size;
}

static bool find_by_gids(const char *sys, const char *iface, char *name, size_t size)
{
    char pattern[PATTERN_BYTES];
    glob_t found = {0};
    bool named = false;

    snprintf(pattern, sizeof pattern, "%s/class/infiniband/*/ports/*/gid_attrs/ndevs/*", sys);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !named; i++)
            named = holds(found.gl_pathv[i], iface) && write_name(found.gl_pathv[i], name, size);
    globfree(&found);
    return named;
}

/* The device in `folder`/infiniband, with a port of it. */
static bool find_in(const char *folder, unsigned port, char *name, size_t size)
{
    char pattern[PATTERN_BYTES];
    glob_t found = {0};
    bool named;

    snprintf(pattern, sizeof pattern, "%s/infiniband/*/ports/%u", folder, port);
    named = glob(pattern, 0, NULL, &found) == 0 && write_name(found.gl_pathv[0], name, size);
    globfree(&found);
    return named;
}

bool verbs_device_of_interface(const char *sys, const char *iface, char *name, size_t size)
{
    char path[PATH_BYTES];
    char text[16];
    unsigned port = 0;

    if (find_by_gids(sys, iface, name, size))
        return true;
    snprintf(path, sizeof path, "%s/class/net/%s/dev_port", sys, iface);
    if (read_line(path, text, sizeof text))
        sscanf(text, "%u", &port);
    snprintf(path, sizeof path, "%s/class/net/%s/device", sys, iface);
    return find_in(path, port + 1, name, size);
}

bool verbs_device_of_pci(const char *sys, const char *pci, char *name, size_t size)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/bus/pci/devices/%s", sys, pci);
    return find_in(path, 1, name, size);
}
