/* SPDX-License-Identifier: BSD-3-Clause */
#include "bind.h"

#include "check.h"
#include "device.h"
#include "journal.h"
#include "settings.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SENTENCE 512
/* A driver's interfaces may come a while after the driver, and udev names them a moment later. */
#define APPEAR_TRIES 100
#define RENAME_TRIES 10
#define TRY_NS 100000000

__attribute__((format(printf, 2, 3))) static void say(const struct bind_place *place,
                                                      const char *format, ...)
{
    char sentence[SENTENCE];
    va_list args;

    if (place->say == NULL)
        return;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    place->say(place->data, sentence);
}

/* --- the kernel's files --- */

static int write_device(const struct bind_place *place, const char *pci, const char *name,
                        const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, DEVICE_PATH "/%s", place->root, pci, name);
    return place->kernel->write(path, text);
}

/* Takes the device from whatever drives it, and gives it to `driver`; "": to none. */
static int change_driver(const struct bind_place *place, const char *pci, const char *driver,
                         struct err *err)
{
    char now[DEVICE_WORD], path[PATH_MAX];
    int rc = 0;

    bind_device_driver(place->root, pci, now);
    if (strcmp(now, driver) == 0)
        return 0;
    snprintf(path, sizeof path, DRIVER_PATH "/unbind", place->root, now);
    if (now[0] != '\0' && (rc = place->kernel->write(path, pci)) != 0)
        return err_set(err, rc, "PCI device %s can't be taken from its driver %s: %s.", pci, now,
                       strerror(-rc));
    if (driver[0] == '\0')
        return 0;
    if (!sysfs_exists(DRIVER_PATH, place->root, driver))
        return err_set(err, -ENODEV,
                       "PCI device %s can't go back to its driver %s, which is not loaded: "
                       "`modprobe %s`, then restore again.",
                       pci, driver, driver);
    snprintf(path, sizeof path, DRIVER_PATH "/bind", place->root, driver);
    rc = place->kernel->write(path, pci);
    bind_device_driver(place->root, pci, now);
    if (strcmp(now, driver) == 0) /* -EBUSY: the driver has found it by itself meanwhile */
        return 0;
    rc = rc != 0 ? rc : -ENODEV;
    return err_set(err, rc,
                   "The driver %s does not take PCI device %s: %s (the kernel's log may say why).",
                   driver, pci, strerror(-rc));
}

static void read_override(const struct bind_place *place, const char *pci, char *driver)
{
    sysfs_line(driver, DEVICE_WORD, DEVICE_PATH "/driver_override", place->root, pci);
    if (strcmp(driver, "(null)") == 0)
        driver[0] = '\0';
}

/* An empty line takes the override away. */
static int set_override(const struct bind_place *place, const char *pci, const char *driver,
                        struct err *err)
{
    char now[DEVICE_WORD];
    int rc;

    read_override(place, pci, now);
    if (strcmp(now, driver) == 0)
        return 0;
    rc = write_device(place, pci, "driver_override", driver[0] != '\0' ? driver : "\n");
    if (rc != 0)
        err_set(err, rc, "The driver override of PCI device %s can't be set: %s.", pci,
                strerror(-rc));
    return rc;
}

static int set_functions(const struct bind_place *place, const char *pci, long count,
                         struct err *err)
{
    char text[24];
    long now = (long)sysfs_number(-1, DEVICE_PATH "/sriov_numvfs", place->root, pci);
    int rc = 0;

    if (count < 0 || now < 0 || now == count)
        return 0;
    snprintf(text, sizeof text, "%ld", count);
    if (now > 0 && count > 0) /* only from none to some, and back */
        rc = write_device(place, pci, "sriov_numvfs", "0");
    if (rc == 0)
        rc = write_device(place, pci, "sriov_numvfs", text);
    if (rc != 0)
        err_set(err, rc, "PCI device %s can't have %ld virtual functions: %s.", pci, count,
                strerror(-rc));
    return rc;
}

/* --- what is written down --- */

static int note_device(const struct bind_place *place, const char *pci, json_t *devices,
                       struct err *err)
{
    char driver[DEVICE_WORD], override[DEVICE_WORD];
    json_t *interfaces = json_array(), *state = NULL;
    struct device_interfaces found;
    int rc = 0;

    bind_device_interfaces(place->root, pci, &found);
    for (size_t i = 0; i < found.count && rc == 0; i++) {
        rc = place->kernel->read_interface(found.list[i].name, &state, err);
        if (rc != 0)
            break;
        json_object_set_new(state, "dev_port", json_integer(found.list[i].port));
        json_object_set_new(state, "settings", bind_settings_read(place->root, found.list[i].name));
        json_array_append_new(interfaces, state);
    }
    bind_device_driver(place->root, pci, driver);
    read_override(place, pci, override);
    json_array_append_new(
        devices,
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "pci", pci, "driver", driver, "driver_override",
                  override, "numa",
                  (json_int_t)sysfs_number(-1, DEVICE_PATH "/numa_node", place->root, pci), "vfs",
                  (json_int_t)sysfs_number(-1, DEVICE_PATH "/sriov_numvfs", place->root, pci),
                  "interfaces", interfaces));
    return rc;
}

static int make_journal(const struct bind_place *place, const struct bind_request *request,
                        json_t **journal, struct err *err)
{
    char boot[64], made[32];
    time_t now = time(NULL);
    struct tm parts;
    json_t *devices = json_array();
    int rc = 0;

    sysfs_line(boot, sizeof boot, BOOT_PATH, place->root);
    strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    for (size_t i = 0; i < request->count && rc == 0; i++)
        rc = note_device(place, request->devices[i], devices, err);
    *journal = json_pack("{s:i, s:s, s:s, s:i, s:s, s:i, s:o, s:o}", "switchbench_bind",
                         JOURNAL_VERSION, "boot", boot, "made", made, "pid", (int)getpid(),
                         "driver", request->driver, "hugepages_reserved", (int)request->hugepages,
                         "hugepages", bind_hugepages_read(place->root), "devices", devices);
    if (rc == 0 && *journal == NULL)
        rc = err_set(err, -ENOMEM, "There is no memory for the journal.");
    return rc;
}

/* --- binding --- */

static int take_device(const struct bind_place *place, const json_t *device, const char *driver,
                       struct err *err)
{
    const char *pci = bind_journal_text(device, "pci");
    int rc = set_functions(place, pci,
                           json_integer_value(json_object_get(device, "vfs")) > 0 ? 0 : -1, err);

    if (rc == 0)
        rc = set_override(place, pci, driver, err);
    if (rc == 0)
        rc = change_driver(place, pci, driver, err);
    if (rc == 0)
        say(place, "PCI device %s: from %s to %s.", pci,
            bind_journal_text(device, "driver")[0] != '\0' ? bind_journal_text(device, "driver")
                                                           : "no driver",
            driver);
    return rc;
}

static int take_all(const struct bind_place *place, const struct bind_request *request,
                    const json_t *journal, struct err *err)
{
    const json_t *devices = json_object_get(journal, "devices");
    int rc = request->hugepages > 0 ? bind_hugepages_reserve(place, request->hugepages, err) : 0;

    for (size_t i = 0; i < json_array_size(devices) && rc == 0; i++)
        rc = take_device(place, json_array_get(devices, i), request->driver, err);
    return rc;
}

/* --- restoring --- */

/* The present name of the interface that has this number on the device; "": it has not come. */
static void await_interface(const struct bind_place *place, const char *pci, const json_t *state,
                            char name[static IF_NAMESIZE])
{
    long port = (long)json_integer_value(json_object_get(state, "dev_port"));
    long try_ns = place->try_ns > 0 ? place->try_ns : TRY_NS;
    struct device_interfaces interfaces;

    name[0] = '\0';
    for (int i = 0, named = 0; i < APPEAR_TRIES && named < RENAME_TRIES; i++) {
        bind_device_interfaces(place->root, pci, &interfaces);
        for (size_t k = 0; k < interfaces.count; k++)
            if (interfaces.list[k].port == port)
                memcpy(name, interfaces.list[k].name, IF_NAMESIZE);
        if (strcmp(name, bind_journal_text(state, "name")) == 0)
            return;
        named += name[0] != '\0';
        (void)nanosleep(&(struct timespec){.tv_nsec = try_ns}, NULL);
    }
}

static int restore_interface(const struct bind_place *place, const char *pci, const json_t *state,
                             struct err *err)
{
    char name[IF_NAMESIZE];

    await_interface(place, pci, state, name);
    if (name[0] == '\0')
        return err_set(err, -ENODEV,
                       "Interface %s of PCI device %s has not come back within %d s: see the "
                       "kernel's log, then restore again.",
                       bind_journal_text(state, "name"), pci, APPEAR_TRIES / 10);
    bind_settings_write(place, name, json_object_get(state, "settings"));
    return place->kernel->write_interface(name, state, err);
}

static int restore_device(const struct bind_place *place, const json_t *device, struct err *err)
{
    const json_t *interfaces = json_object_get(device, "interfaces");
    const char *pci = bind_journal_text(device, "pci");
    int rc;

    if (!sysfs_exists(DEVICE_PATH, place->root, pci))
        return err_set(err, -ENODEV,
                       "PCI device %s is gone (unplugged?): `echo 1 > /sys/bus/pci/rescan`, then "
                       "restore again.",
                       pci);
    rc = set_override(place, pci, bind_journal_text(device, "driver_override"), err);
    if (rc == 0)
        rc = change_driver(place, pci, bind_journal_text(device, "driver"), err);
    if (rc == 0)
        rc = set_functions(place, pci, (long)json_integer_value(json_object_get(device, "vfs")),
                           err);
    for (size_t i = 0; i < json_array_size(interfaces) && rc == 0; i++)
        rc = restore_interface(place, pci, json_array_get(interfaces, i), err);
    if (rc == 0)
        say(place, "PCI device %s: back at %s.", pci,
            bind_journal_text(device, "driver")[0] != '\0' ? bind_journal_text(device, "driver")
                                                           : "no driver");
    return rc;
}

/* The last change first. One failure does not keep the rest from coming back. */
static int restore_all(const struct bind_place *place, const json_t *journal, struct err *err)
{
    const json_t *devices = json_object_get(journal, "devices");
    int first = 0;

    for (size_t i = json_array_size(devices); i-- > 0;) {
        int rc = restore_device(place, json_array_get(devices, i), err);

        first = first != 0 ? first : rc;
    }
    if (json_integer_value(json_object_get(journal, "hugepages_reserved")) > 0) {
        int rc = bind_hugepages_write(place, json_object_get(journal, "hugepages"), err);

        first = first != 0 ? first : rc;
    }
    return first;
}

/* Whoever has a device open would be left with a device that is another's. */
static int check_holders(const struct bind_place *place, const json_t *journal, struct err *err)
{
    const json_t *devices = json_object_get(journal, "devices");

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *pci = bind_journal_text(json_array_get(devices, i), "pci");
        char name[DEVICE_WORD];
        int holder = bind_device_holder(place->root, pci, name);

        if (holder != 0)
            return err_set(err, -EBUSY, "Process %d (%s) uses PCI device %s: end it, then restore.",
                           holder, name, pci);
    }
    return 0;
}

/* Devices are back with their drivers after a boot; the journal only says so. */
static int forget_past(const struct bind_place *place, const json_t *journal, struct err *err)
{
    const json_t *devices = json_object_get(journal, "devices");

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        char now[DEVICE_WORD];

        bind_device_driver(place->root, bind_journal_text(device, "pci"), now);
        say(place,
            "PCI device %s: the machine has been booted since %s; the device is %s%s by itself%s.",
            bind_journal_text(device, "pci"), bind_journal_text(journal, "made"),
            now[0] != '\0' ? "at " : "without a driver", now,
            strcmp(now, bind_journal_text(device, "driver")) == 0 ? ", as before" : "");
    }
    return bind_journal_remove(place->journal, err);
}

/* --- the calls --- */

/* Is all that is asked for done already, says this journal of the present boot? */
static bool is_done(const struct bind_place *place, const struct bind_request *request,
                    const json_t *journal)
{
    const json_t *devices = json_object_get(journal, "devices");

    for (size_t i = 0; i < request->count; i++) {
        bool noted = false;
        char now[DEVICE_WORD];

        for (size_t k = 0; k < json_array_size(devices); k++)
            noted |= strcmp(bind_journal_text(json_array_get(devices, k), "pci"),
                            request->devices[i]) == 0;
        bind_device_driver(place->root, request->devices[i], now);
        if (!noted || strcmp(now, request->driver) != 0)
            return false;
    }
    return true;
}

/* 0: there is none of this boot. */
static int check_journal(const struct bind_place *place, const struct bind_request *request,
                         struct err *err)
{
    json_t *journal;
    int rc = bind_journal_read(place->journal, &journal, err);

    if (rc != 0)
        return rc == -ENOENT ? 0 : rc;
    if (!bind_journal_is_past(journal, place->root))
        rc = is_done(place, request, journal)
                 ? BIND_ALREADY
                 : err_set(err, -EEXIST,
                           "There is a journal already, %s of %s: other devices are bound, or a "
                           "run was killed; restore first (`switchbench-node --restore`).",
                           place->journal, bind_journal_text(journal, "made"));
    json_decref(journal);
    return rc;
}

int bind_check(const struct bind_place *place, const struct bind_request *request, struct err *err)
{
    int rc = check_journal(place, request, err);

    if (rc == 0)
        rc = bind_journal_check(place->journal, err);
    if (rc == 0)
        rc = bind_check_driver(place, request->driver, err);
    for (size_t i = 0; i < request->count && rc == 0; i++)
        rc = bind_check_device(place, request, request->devices[i], err);
    return rc;
}

int bind_devices(const struct bind_place *place, const struct bind_request *request,
                 struct err *err)
{
    json_t *journal = NULL;
    struct err why = {""};
    int lock = -1, rc = bind_check(place, request, err);

    if (rc != 0)
        return rc;
    if (sysfs_exists("%s", place->journal)) /* of an earlier boot */
        (void)bind_restore(place, err);
    rc = make_journal(place, request, &journal, err);
    if (rc == 0)
        rc = bind_journal_write(place->journal, journal, err);
    if (rc == -EEXIST)
        err_set(err, rc, "Another process has just written the journal %s: restore first.",
                place->journal);
    if (rc == 0)
        rc = bind_journal_lock(place->journal, &lock, err);
    if (rc == 0 && (rc = take_all(place, request, journal, err)) != 0) {
        /* The journal goes only when all is as before. */
        if (restore_all(place, journal, &why) == 0)
            (void)bind_journal_remove(place->journal, &why);
        else
            say(place, "%s The journal stays: %s.", why.text, place->journal);
    }
    if (lock >= 0)
        close(lock);
    json_decref(journal);
    return rc;
}

static int restore_from(const struct bind_place *place, const json_t *journal, struct err *err)
{
    int rc;

    if (bind_journal_is_past(journal, place->root))
        return forget_past(place, journal, err);
    rc = check_holders(place, journal, err);
    if (rc == 0)
        rc = restore_all(place, journal, err);
    return rc == 0 ? bind_journal_remove(place->journal, err) : rc;
}

int bind_restore(const struct bind_place *place, struct err *err)
{
    json_t *journal = NULL;
    int lock = -1, rc = bind_journal_read(place->journal, &journal, err);

    if (rc == -ENOENT) {
        say(place, "There is nothing to restore: no journal %s.", place->journal);
        return 0;
    }
    if (rc == 0)
        rc = bind_journal_lock(place->journal, &lock, err);
    if (rc == 0)
        rc = restore_from(place, journal, err);
    if (lock >= 0)
        close(lock);
    json_decref(journal);
    return rc;
}

int bind_hold(const struct bind_place *place, int *lock_fd, struct err *err)
{
    return bind_journal_lock(place->journal, lock_fd, err);
}
