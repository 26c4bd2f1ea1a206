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
#define APPEAR_TRIES                                                                               \
    100                 /* of 100 ms: a driver's interfaces, also where it probes in its own time */
#define RENAME_TRIES 10 /* of 100 ms: udev gives an interface its name a moment after it came */
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

static void pause_a_try(const struct bind_place *place)
{
    long pause_ns = place->try_ns > 0 ? place->try_ns : TRY_NS;

    (void)nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* --- the kernel's files --- */

static int write_device(const struct bind_place *place, const char *pci, const char *name,
                        const char *text)
{
    char path[PATH_MAX];

    bind_device_path(path, sizeof path, place->root, pci, name);
    return place->kernel->write(path, text);
}

static int write_driver(const struct bind_place *place, const char *driver, const char *name,
                        const char *pci)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/sys/bus/pci/drivers/%s/%s", place->root, driver, name);
    return place->kernel->write(path, pci);
}

/* Takes the device from whatever drives it. */
static int leave_driver(const struct bind_place *place, const char *pci, struct err *err)
{
    char driver[DEVICE_WORD];
    int rc;

    bind_device_driver(place->root, pci, driver);
    if (driver[0] == '\0')
        return 0;
    rc = write_driver(place, driver, "unbind", pci);
    if (rc != 0)
        err_set(err, rc, "PCI device %s can't be taken from its driver %s: %s.", pci, driver,
                strerror(-rc));
    return rc;
}

static int enter_driver(const struct bind_place *place, const char *pci, const char *driver,
                        struct err *err)
{
    char now[DEVICE_WORD];
    int rc = write_driver(place, driver, "bind", pci);

    bind_device_driver(place->root, pci, now);
    if (strcmp(now, driver) == 0) /* it may have been found by itself meanwhile: -EBUSY */
        return 0;
    rc = rc != 0 ? rc : -ENODEV;
    return err_set(err, rc,
                   "The driver %s does not take PCI device %s: %s (the kernel's log may say why).",
                   driver, pci, strerror(-rc));
}

/* An empty line takes the override away. */
static int set_override(const struct bind_place *place, const char *pci, const char *driver,
                        struct err *err)
{
    char now[DEVICE_WORD];
    int rc;

    bind_device_word(place->root, pci, "driver_override", now);
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
    long now = bind_device_number(place->root, pci, "sriov_numvfs");
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

static int note_interfaces(const struct bind_place *place, const char *pci, json_t *list,
                           struct err *err)
{
    struct device_interfaces interfaces;
    int rc = 0;

    bind_device_interfaces(place->root, pci, &interfaces);
    for (size_t i = 0; i < interfaces.count && rc == 0; i++) {
        const char *name = interfaces.list[i].name;
        json_t *state = NULL;

        rc = place->kernel->read_interface(name, &state, err);
        if (rc != 0)
            break;
        json_object_set_new(state, "dev_port", json_integer(interfaces.list[i].port));
        json_object_set_new(state, "settings", bind_settings_read(place->root, name));
        json_array_append_new(list, state);
    }
    return rc;
}

static int note_device(const struct bind_place *place, const char *pci, json_t *devices,
                       struct err *err)
{
    char driver[DEVICE_WORD], override[DEVICE_WORD];
    json_t *interfaces = json_array();
    int rc = note_interfaces(place, pci, interfaces, err);

    bind_device_driver(place->root, pci, driver);
    bind_device_word(place->root, pci, "driver_override", override);
    json_array_append_new(
        devices,
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "pci", pci, "driver", driver, "driver_override",
                  override, "numa", (json_int_t)bind_device_number(place->root, pci, "numa_node"),
                  "vfs", (json_int_t)bind_device_number(place->root, pci, "sriov_numvfs"),
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

    bind_journal_boot(place->root, boot, sizeof boot);
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

/* --- lending --- */

static int lend_device(const struct bind_place *place, const json_t *device, const char *driver,
                       struct err *err)
{
    const char *pci = text_of(device, "pci");
    int rc = set_functions(place, pci,
                           json_integer_value(json_object_get(device, "vfs")) > 0 ? 0 : -1, err);

    if (rc == 0)
        rc = set_override(place, pci, driver, err);
    if (rc == 0)
        rc = leave_driver(place, pci, err);
    if (rc == 0)
        rc = enter_driver(place, pci, driver, err);
    if (rc == 0)
        say(place, "PCI device %s: from %s to %s.", pci,
            text_of(device, "driver")[0] != '\0' ? text_of(device, "driver") : "no driver", driver);
    return rc;
}

static int lend_all(const struct bind_place *place, const struct bind_request *request,
                    const json_t *journal, struct err *err)
{
    const json_t *devices = json_object_get(journal, "devices");
    int rc = request->hugepages > 0 ? bind_hugepages_reserve(place, request->hugepages, err) : 0;

    for (size_t i = 0; i < json_array_size(devices) && rc == 0; i++)
        rc = lend_device(place, json_array_get(devices, i), request->driver, err);
    return rc;
}

/* --- giving back --- */

static int bring_driver(const struct bind_place *place, const json_t *device, struct err *err)
{
    const char *pci = text_of(device, "pci"), *driver = text_of(device, "driver");
    char now[DEVICE_WORD];
    int rc = set_override(place, pci, text_of(device, "driver_override"), err);

    bind_device_driver(place->root, pci, now);
    if (rc != 0 || strcmp(now, driver) == 0)
        return rc;
    rc = leave_driver(place, pci, err);
    if (rc != 0 || driver[0] == '\0')
        return rc;
    if (!bind_device_driver_known(place->root, driver))
        return err_set(err, -ENODEV,
                       "PCI device %s can't go back to its driver %s, which is not loaded: "
                       "`modprobe %s`, then restore again.",
                       pci, driver, driver);
    return enter_driver(place, pci, driver, err);
}

/* The present name of the interface that has this number on the device; "": it has not come. */
static void find_interface(const struct bind_place *place, const char *pci, long port, char *name)
{
    struct device_interfaces interfaces;

    name[0] = '\0';
    bind_device_interfaces(place->root, pci, &interfaces);
    for (size_t i = 0; i < interfaces.count; i++)
        if (interfaces.list[i].port == port)
            snprintf(name, IF_NAMESIZE, "%s", interfaces.list[i].name);
}

static void await_interface(const struct bind_place *place, const char *pci, const json_t *state,
                            char *name)
{
    long port = (long)json_integer_value(json_object_get(state, "dev_port"));

    find_interface(place, pci, port, name);
    for (int i = 0; i < APPEAR_TRIES && name[0] == '\0'; i++) {
        pause_a_try(place);
        find_interface(place, pci, port, name);
    }
    for (int i = 0;
         i < RENAME_TRIES && name[0] != '\0' && strcmp(name, text_of(state, "name")) != 0; i++) {
        pause_a_try(place);
        find_interface(place, pci, port, name);
    }
}

static int bring_interface(const struct bind_place *place, const char *pci, const json_t *state,
                           struct err *err)
{
    char name[IF_NAMESIZE];

    await_interface(place, pci, state, name);
    if (name[0] == '\0')
        return err_set(err, -ENODEV,
                       "Interface %s of PCI device %s has not come back within %d s: see the "
                       "kernel's log, then restore again.",
                       text_of(state, "name"), pci, APPEAR_TRIES / 10);
    bind_settings_write(place, name, json_object_get(state, "settings"));
    return place->kernel->write_interface(name, state, err);
}

static int bring_device(const struct bind_place *place, const json_t *device, struct err *err)
{
    const json_t *interfaces = json_object_get(device, "interfaces");
    const char *pci = text_of(device, "pci");
    int rc;

    if (!bind_device_exists(place->root, pci))
        return err_set(err, -ENODEV,
                       "PCI device %s is gone (unplugged?): `echo 1 > /sys/bus/pci/rescan`, then "
                       "restore again.",
                       pci);
    rc = bring_driver(place, device, err);
    if (rc == 0)
        rc = set_functions(place, pci, (long)json_integer_value(json_object_get(device, "vfs")),
                           err);
    for (size_t i = 0; i < json_array_size(interfaces) && rc == 0; i++)
        rc = bring_interface(place, pci, json_array_get(interfaces, i), err);
    if (rc == 0)
        say(place, "PCI device %s: back at %s.", pci,
            text_of(device, "driver")[0] != '\0' ? text_of(device, "driver") : "no driver");
    return rc;
}

/* The last change first. One failure does not keep the rest from coming back. */
static int bring_all(const struct bind_place *place, const json_t *journal, struct err *err)
{
    const json_t *devices = json_object_get(journal, "devices");
    int first = 0;

    for (size_t i = json_array_size(devices); i-- > 0;) {
        int rc = bring_device(place, json_array_get(devices, i), err);

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
        const char *pci = text_of(json_array_get(devices, i), "pci");
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

        bind_device_driver(place->root, text_of(device, "pci"), now);
        say(place,
            "PCI device %s: the machine has been booted since %s; the device is %s%s by itself%s.",
            text_of(device, "pci"), text_of(journal, "made"),
            now[0] != '\0' ? "at " : "without a driver", now,
            strcmp(now, text_of(device, "driver")) == 0 ? ", as before" : "");
    }
    return bind_journal_remove(place->journal, err);
}

/* --- the three calls --- */

/* Is all that is asked for done already, says this journal of the present boot? */
static bool is_done(const struct bind_place *place, const struct bind_request *request,
                    const json_t *journal)
{
    const json_t *devices = json_object_get(journal, "devices");

    for (size_t i = 0; i < request->count; i++) {
        bool noted = false;
        char now[DEVICE_WORD];

        for (size_t k = 0; k < json_array_size(devices); k++)
            noted |= strcmp(text_of(json_array_get(devices, k), "pci"), request->devices[i]) == 0;
        bind_device_driver(place->root, request->devices[i], now);
        if (!noted || strcmp(now, request->driver) != 0)
            return false;
    }
    return true;
}

/* 0: there is none that matters. */
static int judge_journal(const struct bind_place *place, const struct bind_request *request,
                         bool *past, struct err *err)
{
    json_t *journal;
    int rc = bind_journal_read(place->journal, &journal, err);

    *past = false;
    if (rc != 0)
        return rc == -ENOENT ? 0 : rc;
    *past = bind_journal_is_past(journal, place->root);
    if (!*past && is_done(place, request, journal))
        rc = BIND_ALREADY;
    else if (!*past)
        rc = err_set(err, -EEXIST,
                     "There is a journal already, %s of %s: other devices are bound, or a run was "
                     "killed; restore first (`switchbench-node --restore`).",
                     place->journal, text_of(journal, "made"));
    json_decref(journal);
    return rc;
}

static int check_request(const struct bind_place *place, const struct bind_request *request,
                         bool *past, struct err *err)
{
    int rc = judge_journal(place, request, past, err);

    if (rc == 0)
        rc = bind_journal_check(place->journal, err);
    if (rc == 0)
        rc = bind_check_driver(place, request->driver, err);
    for (size_t i = 0; i < request->count && rc == 0; i++)
        rc = bind_check_device(place, request, request->devices[i], err);
    return rc;
}

int bind_check(const struct bind_place *place, const struct bind_request *request, struct err *err)
{
    bool past;

    return check_request(place, request, &past, err);
}

/* What was lent before the failure comes back, and the journal goes only when all of it has. */
static int take_back(const struct bind_place *place, const json_t *journal, int code)
{
    struct err why = {""};

    if (bring_all(place, journal, &why) == 0) {
        (void)bind_journal_remove(place->journal, &why);
        return code;
    }
    say(place, "%s The journal stays: %s.", why.text, place->journal);
    return code;
}

int bind_devices(const struct bind_place *place, const struct bind_request *request,
                 struct err *err)
{
    json_t *journal = NULL;
    bool past = false;
    int held = -1, rc = check_request(place, request, &past, err);

    if (rc != 0)
        return rc;
    if (past)
        (void)bind_restore(place, err);
    rc = make_journal(place, request, &journal, err);
    if (rc == 0)
        rc = bind_journal_write(place->journal, journal, err);
    if (rc == -EEXIST)
        err_set(err, rc, "Another process has just written the journal %s: restore first.",
                place->journal);
    if (rc == 0)
        rc = bind_hold(place, &held, err);
    if (rc == 0 && (rc = lend_all(place, request, journal, err)) != 0)
        rc = take_back(place, journal, rc);
    if (held >= 0)
        close(held);
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
        rc = bring_all(place, journal, err);
    return rc == 0 ? bind_journal_remove(place->journal, err) : rc;
}

int bind_restore(const struct bind_place *place, struct err *err)
{
    json_t *journal = NULL;
    int held = -1, rc = bind_journal_read(place->journal, &journal, err);

    if (rc == -ENOENT) {
        say(place, "There is nothing to restore: no journal %s.", place->journal);
        return 0;
    }
    if (rc == 0)
        rc = bind_hold(place, &held, err);
    if (rc == 0)
        rc = restore_from(place, journal, err);
    if (held >= 0)
        close(held);
    json_decref(journal);
    return rc;
}

int bind_hold(const struct bind_place *place, int *held_fd, struct err *err)
{
    int rc = bind_journal_lock(place->journal, held_fd);

    if (rc == -EBUSY)
        return err_set(err, rc,
                       "The devices of journal %s are in use by a run, or being restored: wait for "
                       "its end, or end it.",
                       place->journal);
    if (rc != 0)
        return err_set(err, rc, "The journal %s can't be locked: %s.", place->journal,
                       strerror(-rc));
    return 0;
}
