/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include "sysfs.h"

#include <errno.h>
#include <fcntl.h>
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
    fd = rc == 0 ? open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
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

int bind_journal_read(const char *path, json_t **journal, struct err *err)
{
    json_error_t error;
    json_int_t version;

    *journal = NULL;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return -ENOENT;
    *journal = json_load_file(path, 0, &error);
    if (*journal == NULL)
        return err_set(err, -EINVAL, "The journal %s can't be read: %s (line %d).", path,
                       error.text, error.line);
    version = json_integer_value(json_object_get(*journal, "switchbench_bind"));
    if (version == JOURNAL_VERSION && json_is_array(json_object_get(*journal, "devices")))
        return 0;
    json_decref(*journal);
    *journal = NULL;
    return err_set(err, -EINVAL,
                   "%s is not a journal that this version can read (switchbench_bind: %lld, wanted "
                   "%d): restore with the version that wrote it.",
                   path, (long long)version, JOURNAL_VERSION);
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

    *fd = open(path, O_RDONLY | O_CLOEXEC);
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
