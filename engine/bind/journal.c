/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include "guard_host.h"
#include "sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int sync_folder(const char *path)
{
    char copy[PATH_MAX];
    int fd, rc;

    snprintf(copy, sizeof copy, "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    rc = fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    return rc == -EINVAL ? 0 : rc; /* a file system without it has nothing to lose */
}

/* Its folder, and those above it. */
static int make_folder(const char *path)
{
    char copy[PATH_MAX];
    int rc = 0;

    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash != NULL && rc == 0;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        rc = mkdir(copy, 0755) == 0 || errno == EEXIST ? 0 : -errno;
        *slash = '/';
    }
    return rc;
}

static int no_journal(const char *path, int code, struct err *err)
{
    return err_set(err, code,
                   "The journal %s can't be written (%s), and without it no device is touched: be "
                   "root, or name another file with --journal.",
                   path, strerror(-code));
}

int bind_journal_check(const char *path, struct err *err)
{
    char copy[PATH_MAX], *folder = copy;

    snprintf(copy, sizeof copy, "%s", path);
    do
        folder = dirname(folder);
    while (access(folder, F_OK) < 0 && strcmp(folder, "/") != 0 && strcmp(folder, ".") != 0);
    return access(folder, W_OK) == 0 ? 0 : no_journal(path, -errno, err);
}

/* A name that exists is never replaced: link(2) fails where rename(2) would not. A file system
 * without links (9p, FAT) has renameat2 or neither; there the name is looked for first. */
static int give_name(const char *temporary, const char *path)
{
    if (link(temporary, path) == 0)
        return unlink(temporary) == 0 ? 0 : -errno;
    if (errno == EEXIST)
        return -EEXIST;
    if (access(path, F_OK) == 0)
        return -EEXIST;
    return rename(temporary, path) == 0 ? 0 : -errno;
}

int bind_journal_write(const char *path, const json_t *journal, struct err *err)
{
    char temporary[PATH_MAX];
    int fd, rc;

    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    rc = make_folder(path);
    /* One that a killed process of this number left; never what somebody else put there. */
    (void)unlink(temporary);
    fd = rc == 0 ? open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644) : -1;
    if (fd < 0) {
        rc = rc != 0 ? rc : -errno;
        goto cleanup;
    }
    errno = EIO;
    if (json_dumpfd(journal, fd, JSON_INDENT(1)) < 0 || fsync(fd) < 0)
        rc = -errno;
    close(fd);
    if (rc == 0)
        rc = give_name(temporary, path);
    if (rc == 0)
        rc = sync_folder(path);
    else
        (void)unlink(temporary);
cleanup:
    if (rc != 0 && rc != -EEXIST)
        no_journal(path, rc, err);
    return rc;
}

/* Does it belong to this user or to root, and can nobody else write it? */
static bool is_ours(const struct stat *status)
{
    return (status->st_uid == 0 || status->st_uid == geteuid()) &&
           (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* What a journal says is done as root: so it and its folder must be ours. */
static int open_ours(const char *path, int *fd, struct err *err)
{
    char copy[PATH_MAX];
    struct stat file, folder;

    *fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0)
        return errno == ENOENT ? -ENOENT
                               : err_set(err, -EINVAL, "The journal %s can't be read: %s.", path,
                                         errno == ELOOP ? "it is a link" : strerror(errno));
    snprintf(copy, sizeof copy, "%s", path);
    if (fstat(*fd, &file) == 0 && S_ISREG(file.st_mode) && is_ours(&file) &&
        stat(dirname(copy), &folder) == 0 && is_ours(&folder))
        return 0;
    close(*fd);
    *fd = -1;
    return err_set(err, -EINVAL,
                   "The journal %s is not used: it has to be a regular file in a folder, both of "
                   "root (or this user) and writable by nobody else.",
                   path);
}

/* A word that is no path: a driver's or a setting's name. */
static bool is_name(const char *text)
{
    return *text != '.' && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_-.")] == '\0';
}

static bool is_sound_interface(const json_t *interface)
{
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(interface, "settings"), key, value)
    {
        if ((strncmp(key, "ipv4/", 5) != 0 && strncmp(key, "ipv6/", 5) != 0) || !is_name(key + 5))
            return false;
    }
    return true;
}

static bool is_sound_device(const json_t *device)
{
    const json_t *interfaces = json_object_get(device, "interfaces");
    bool sound = guard_host_is_pci(bind_journal_text(device, "pci")) &&
                 is_name(bind_journal_text(device, "driver")) &&
                 is_name(bind_journal_text(device, "driver_override"));

    for (size_t i = 0; i < json_array_size(interfaces); i++)
        sound &= is_sound_interface(json_array_get(interfaces, i));
    return sound;
}

/* Each name becomes a part of a path that root writes to. */
static bool is_sound(const json_t *journal)
{
    const json_t *devices = json_object_get(journal, "devices");
    bool sound = true;
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(journal, "hugepages"), key, value)
    {
        sound &=
            fnmatch("/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages", key,
                    FNM_PATHNAME) == 0 ||
            fnmatch("/sys/kernel/mm/hugepages/hugepages-*/nr_hugepages", key, FNM_PATHNAME) == 0;
    }
    for (size_t i = 0; i < json_array_size(devices); i++)
        sound &= is_sound_device(json_array_get(devices, i));
    return sound;
}

int bind_journal_read(const char *path, json_t **journal, struct err *err)
{
    json_error_t error;
    json_int_t version;
    int fd, rc = open_ours(path, &fd, err);

    *journal = NULL;
    if (rc != 0)
        return rc;
    *journal = json_loadfd(fd, 0, &error);
    close(fd);
    if (*journal == NULL)
        return err_set(err, -EINVAL, "The journal %s can't be read: %s (line %d).", path,
                       error.text, error.line);
    version = json_integer_value(json_object_get(*journal, "switchbench_bind"));
    if (version != JOURNAL_VERSION || !json_is_array(json_object_get(*journal, "devices")))
        rc = err_set(err, -EINVAL,
                     "%s is not a journal that this version can read (switchbench_bind: %lld, "
                     "wanted %d): restore with the version that wrote it.",
                     path, (long long)version, JOURNAL_VERSION);
    else if (!is_sound(*journal))
        rc = err_set(err, -EINVAL,
                     "The journal %s names a PCI address, driver, setting or file that is none: "
                     "nothing is restored from it.",
                     path);
    if (rc != 0) {
        json_decref(*journal);
        *journal = NULL;
    }
    return rc;
}

int bind_journal_remove(const char *path, struct err *err)
{
    int rc = unlink(path) == 0 || errno == ENOENT ? sync_folder(path) : -errno;

    if (rc != 0)
        err_set(err, rc, "The journal %s can't be removed: %s.", path, strerror(-rc));
    return rc;
}

int bind_journal_lock(const char *path, int *fd, struct err *err)
{
    int rc;

    *fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (rc == -EBUSY)
        return err_set(err, rc,
                       "The devices of journal %s are in use by a run, or being restored: wait for "
                       "its end, or end it.",
                       path);
    return err_set(err, rc, "The journal %s can't be locked: %s.", path, strerror(-rc));
}

const char *bind_journal_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

bool bind_journal_is_past(const json_t *journal, const char *root)
{
    const char *then = bind_journal_text(journal, "boot");
    char now[64];

    return then[0] != '\0' && sysfs_line(now, sizeof now, BOOT_PATH, root) &&
           strcmp(then, now) != 0;
}
