/* SPDX-License-Identifier: BSD-3-Clause */
#include "bind_tree.h"

#include <errno.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices/"
#define DRIVERS "/sys/bus/pci/drivers/"

struct tree tree;

/* --- the folder --- */

static void make_folders(const char *path)
{
    char part[PATH_MAX];

    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(part, 0755);
        *slash = '/';
    }
}

static void whole(char *path, const char *below)
{
    if (snprintf(path, PATH_MAX, "%s%s", tree.root, below) >= PATH_MAX)
        abort();
}

void tree_file(const char *below, const char *text)
{
    char path[PATH_MAX];
    FILE *file;

    whole(path, below);
    make_folders(path);
    file = fopen(path, "w");
    if (file == NULL)
        abort();
    fprintf(file, "%s\n", text);
    fclose(file);
}

void tree_link(const char *below, const char *target)
{
    char path[PATH_MAX];

    whole(path, below);
    make_folders(path);
    (void)unlink(path);
    if (symlink(target, path) < 0)
        abort();
}

void tree_folder(const char *below)
{
    char path[PATH_MAX];

    whole(path, below);
    make_folders(path);
    (void)mkdir(path, 0755);
}

static int drop_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    return remove(path);
}

void tree_drop(const char *below)
{
    char path[PATH_MAX];

    whole(path, below);
    (void)nftw(path, drop_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool tree_has(const char *below)
{
    char path[PATH_MAX];
    struct stat status;

    whole(path, below);
    return lstat(path, &status) == 0;
}

/* --- what a device is to its kernel driver --- */

static const char *interface_of(const char *pci)
{
    return strcmp(pci, TREE_A) == 0 ? "eth7" : "eth8";
}

static void make_interface(const char *pci, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, DEVICES "%s/net/%s/dev_port", pci, name);
    tree_file(path, "0");
    snprintf(path, sizeof path, "/sys/class/net/%s/mtu", name);
    tree_file(path, "1500");
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
    tree_file(path, "0");
}

static void drop_interface(const char *pci, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, DEVICES "%s/net", pci);
    tree_drop(path);
    snprintf(path, sizeof path, "/sys/class/net/%s", name);
    tree_drop(path);
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s", name);
    tree_drop(path);
}

static void make_device(const char *pci, const char *group)
{
    static const struct {
        const char *name;
        const char *text;
    } files[] = {{"class", "0x020000"},
                 {"driver_override", "(null)"},
                 {"numa_node", "1"},
                 {"sriov_numvfs", "0"}};
    char path[PATH_MAX], target[PATH_MAX];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, DEVICES "%s/%s", pci, files[i].name);
        tree_file(path, files[i].text);
    }
    snprintf(path, sizeof path, DEVICES "%s/driver", pci);
    tree_link(path, "../../drivers/ixgbe");
    snprintf(path, sizeof path, DEVICES "%s/iommu_group", pci);
    snprintf(target, sizeof target, "../../../../kernel/iommu_groups/%s", group);
    tree_link(path, target);
    snprintf(path, sizeof path, "/sys/kernel/iommu_groups/%s/devices/%s", group, pci);
    snprintf(target, sizeof target, "../../../../bus/pci/devices/%s", pci);
    tree_link(path, target);
    make_interface(pci, interface_of(pci));
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s/rp_filter", interface_of(pci));
    tree_file(path, "2");
}

/* --- its kernel --- */

static void on_unbind(const char *pci)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, DEVICES "%s/driver", pci);
    tree_drop(path);
    drop_interface(pci, interface_of(pci));
}

/* A driver gives its interface a name of the kernel's. */
static int on_bind(const char *driver, const char *pci)
{
    char path[PATH_MAX], target[PATH_MAX];

    snprintf(path, sizeof path, DEVICES "%s/driver", pci);
    if (tree_has(path))
        return -EBUSY;
    snprintf(target, sizeof target, "../../drivers/%s", driver);
    tree_link(path, target);
    if (strcmp(driver, "ixgbe") == 0)
        make_interface(pci, strcmp(pci, TREE_A) == 0 ? "eth0" : "eth1");
    return 0;
}

static int fake_write(const char *path, const char *text)
{
    const char *below = path + strlen(tree.root), *name = strrchr(path, '/') + 1;
    char driver[64] = "";

    if (tree.writes++ == 0)
        tree.journaled = access(tree.journal, F_OK) == 0;
    if (tree.writes == tree.dies_at)
        _exit(9);
    if (tree.writes == tree.fails_at)
        return -EIO;
    if (sscanf(below, DRIVERS "%63[^/]", driver) != 1) {
        tree_file(below, strcmp(text, "\n") == 0 ? "(null)" : text);
        return 0;
    }
    if (strcmp(name, "bind") == 0)
        return on_bind(driver, text);
    on_unbind(text);
    return 0;
}

static int fake_guard(const char *pci, const char *driver, struct err *err)
{
    if (strcmp(pci, tree.guarded) != 0)
        return 0;
    return err_set(err, -EPERM, "%s carries the default route (%s).", pci, driver);
}

static int fake_read_interface(const char *name, json_t **state, struct err *err)
{
    *state = json_pack("{s:s, s:s}", "name", name, "mac", "02:00:00:00:00:01");
    return 0;
}

/* Only the name is an interface's here. */
static int fake_write_interface(const char *name, const json_t *state, struct err *err)
{
    const char *wanted = json_string_value(json_object_get(state, "name"));
    const char *pci = strcmp(wanted, "eth7") == 0 ? TREE_A : TREE_B;
    char path[PATH_MAX], value[PATH_MAX];
    FILE *file;

    whole(path, "/proc/sys/net/ipv4/conf/");
    strncat(path, name, sizeof path - strlen(path) - 1);
    strncat(path, "/rp_filter", sizeof path - strlen(path) - 1);
    file = fopen(path, "r");
    if (file == NULL || fgets(value, sizeof value, file) == NULL)
        abort();
    fclose(file);
    value[strcspn(value, "\n")] = '\0';
    drop_interface(pci, name);
    make_interface(pci, wanted);
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s/rp_filter", wanted);
    tree_file(path, value);
    return 0;
}

static const struct bind_kernel fake_kernel = {
    .guard = fake_guard,
    .write = fake_write,
    .read_interface = fake_read_interface,
    .write_interface = fake_write_interface,
};

static void note(void *data, const char *sentence)
{
    size_t used = strlen(tree.said);

    snprintf(tree.said + used, sizeof tree.said - used, "%s\n", sentence);
}

/* --- whole machines --- */

void tree_make(void)
{
    memset(&tree, 0, sizeof tree);
    /* In memory where there is a place for it: a journal is synced at each step, on a busy disk for
     * a second each. */
    snprintf(tree.root, sizeof tree.root, "%s/test_bind.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(tree.root) == NULL)
        abort();
    snprintf(tree.journal, sizeof tree.journal, "%s/lib/journal", tree.root);
    tree.place = (struct bind_place){.root = tree.root,
                                     .journal = tree.journal,
                                     .kernel = &fake_kernel,
                                     .say = note,
                                     .try_ns = 1000000};
    make_device(TREE_A, "7");
    make_device(TREE_B, "8");
    tree_file(DEVICES TREE_DISK "/class", "0x010601");
    tree_folder(DRIVERS "ixgbe");
    tree_folder(DRIVERS "vfio-pci");
    tree_folder(DRIVERS "uio_pci_generic");
    tree_file("/proc/sys/kernel/random/boot_id", "0e2a8ad2-0000-4000-8000-000000000001");
    tree_file("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3");
    tree_file("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0");
}

void tree_remove(void)
{
    (void)nftw(tree.root, drop_one, 16, FTW_DEPTH | FTW_PHYS);
}

static FILE *picture;

static int draw_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    char content[PATH_MAX] = "";
    FILE *file;

    if (kind == FTW_SL) {
        ssize_t length = readlink(path, content, sizeof content - 1);

        content[length > 0 ? length : 0] = '\0';
    } else if (kind == FTW_F && (file = fopen(path, "r")) != NULL) {
        if (fgets(content, sizeof content, file) == NULL)
            content[0] = '\0';
        fclose(file);
        content[strcspn(content, "\n")] = '\0';
    } else if (kind == FTW_D) {
        return 0;
    }
    fprintf(picture, "%s: %s\n", path + strlen(tree.root), content);
    return 0;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Folders have no order. */
static char *sorted(char *text)
{
    char *lines[1024], *rest = text, *result = NULL;
    size_t count = 0, size;
    FILE *out = open_memstream(&result, &size);

    if (out == NULL)
        abort();
    for (char *line = strsep(&rest, "\n"); line != NULL && count < 1024; line = strsep(&rest, "\n"))
        lines[count++] = line;
    qsort(lines, count, sizeof lines[0], compare_lines);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s\n", lines[i]);
    fclose(out);
    free(text);
    return result;
}

char *tree_picture(void)
{
    char path[PATH_MAX], *text = NULL;
    size_t size;

    picture = open_memstream(&text, &size);
    if (picture == NULL)
        abort();
    whole(path, "/sys");
    (void)nftw(path, draw_one, 16, FTW_PHYS);
    whole(path, "/proc");
    (void)nftw(path, draw_one, 16, FTW_PHYS);
    fclose(picture);
    return sorted(text);
}
