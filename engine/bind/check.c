/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include "device.h"
#include "guard_host.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLASS_NETWORK 0x02 /* PCI's base class: the upper 8 of 24 bits */
#define CLASS_BRIDGE 0x06

/* DPDK drives these through their kernel driver (verbs), which has to stay. */
static const char *const bifurcated[] = {"mlx4_core", "mlx5_core", "mana"};

/* What is checked: one device of a request. */
struct question {
    const struct bind_place *place;
    const struct bind_request *request;
    const char *root; /* the place's */
    const char *pci;
    char driver[DEVICE_WORD]; /* that drives it now */
};

int bind_check_driver(const struct bind_place *place, const char *driver, struct err *err)
{
    if (!bind_device_driver_is_user(driver))
        return err_set(err, -EINVAL,
                       "DPDK reaches no device through the driver %s: give vfio-pci, "
                       "uio_pci_generic or igb_uio.",
                       driver);
    if (!sysfs_exists(DRIVER_PATH, place->root, driver))
        return err_set(err, -ENODEV, "The driver %s is not loaded: `modprobe %s`.", driver, driver);
    return 0;
}

bool bind_needed(const struct bind_place *place, const char *pci)
{
    char driver[DEVICE_WORD];

    bind_device_driver(place->root, pci, driver);
    for (size_t i = 0; i < sizeof bifurcated / sizeof bifurcated[0]; i++)
        if (strcmp(driver, bifurcated[i]) == 0)
            return false;
    return true;
}

static int check_kind(const struct question *question, struct err *err)
{
    const char *pci = question->pci;
    long class_code;

    if (!guard_host_is_pci(pci))
        return err_set(
            err, -EINVAL,
            "%.40s is not a PCI address; write it as 0000:3b:00.0 (lspci -D shows them).", pci);
    if (!sysfs_exists(DEVICE_PATH, question->root, pci))
        return err_set(err, -ENODEV,
                       "There is no PCI device %s; `lspci -D -d ::02xx` lists the network devices.",
                       pci);
    class_code = (long)sysfs_number(-1, DEVICE_PATH "/class", question->root, pci);
    if (class_code >> 16 != CLASS_NETWORK)
        return err_set(
            err, -EINVAL,
            "PCI device %s is not a network device (class 0x%06lx); `lspci -D -d ::02xx` "
            "lists those.",
            pci, class_code);
    return 0;
}

static int check_present_driver(const struct question *question, struct err *err)
{
    struct device_interfaces interfaces;

    if (bind_device_driver_is_user(question->driver))
        return err_set(err, -EPERM,
                       "PCI device %s is bound to %s already, and no journal says by whom or what "
                       "it was before: use it as it is (leave `bind` out), or give it back to its "
                       "own driver first (`driverctl unset-override %s`).",
                       question->pci, question->driver, question->pci);
    if (!bind_needed(question->place, question->pci))
        return err_set(err, -EINVAL,
                       "PCI device %s is driven by %s, through which DPDK works: it needs no "
                       "binding, leave it out.",
                       question->pci, question->driver);
    /* An interface of another namespace is not shown here, and what it carries is not known. */
    bind_device_interfaces(question->root, question->pci, &interfaces);
    if (question->driver[0] != '\0' && interfaces.count == 0)
        return err_set(
            err, -EPERM,
            "PCI device %s is driven by %s and shows no interface in this network namespace, "
            "so that it is not known what it carries: move its interface here first (`ip -n "
            "NAME link set dev IFACE netns 1`), or unbind it.",
            question->pci, question->driver);
    return 0;
}

/* What sits on an interface, or holds it, goes away with it and can't be restored. */
static int check_upper(const struct question *question, const char *name, struct err *err)
{
    const char *upper;
    glob_t uppers;
    int rc = 0;

    sysfs_glob(&uppers, "%s/sys/class/net/%s/upper_*", question->root, name);
    if (uppers.gl_pathc > 0) {
        upper = strrchr(uppers.gl_pathv[0], '/') + 1 + strlen("upper_");
        if (sysfs_exists("%s/sys/class/net/%s/bonding", question->root, upper))
            rc = err_set(
                err, -EPERM,
                "Interface %s of PCI device %s is a member of bond %s, which would lose it: "
                "give a port that no bond uses, or take it out first (`ip link set dev %s "
                "nomaster`).",
                name, question->pci, upper, name);
        else
            rc = err_set(
                err, -EPERM,
                "%s sits on interface %s of PCI device %s and would go away with it: take it "
                "off first (`ip link set dev %s nomaster`, or delete %s).",
                upper, name, question->pci, name, upper);
    }
    globfree(&uppers);
    return rc;
}

/* A device of software RDMA (rxe) names its interface in `parent`, and is made by hand. */
static int check_rdma(const struct question *question, const char *name, struct err *err)
{
    char parent[IF_NAMESIZE + 1];
    glob_t devices;
    int rc = 0;

    sysfs_glob(&devices, "%s/sys/class/infiniband/*", question->root);
    for (size_t i = 0; i < devices.gl_pathc && rc == 0; i++) {
        const char *device = strrchr(devices.gl_pathv[i], '/') + 1;

        if (sysfs_line(parent, sizeof parent, "%s/parent", devices.gl_pathv[i]) &&
            strcmp(parent, name) == 0)
            rc = err_set(err, -EPERM,
                         "RDMA device %s sits on interface %s and would go away with it: remove it "
                         "first (`rdma link delete %s`).",
                         device, name, device);
    }
    globfree(&devices);
    return rc;
}

static int check_interfaces(const struct question *question, struct err *err)
{
    struct device_interfaces interfaces;
    int rc = 0;

    bind_device_interfaces(question->root, question->pci, &interfaces);
    for (size_t i = 0; i < interfaces.count && rc == 0; i++) {
        rc = check_upper(question, interfaces.list[i].name, err);
        if (rc == 0)
            rc = check_rdma(question, interfaces.list[i].name, err);
    }
    return rc;
}

/* Virtual functions go away with their physical one; one at a user's driver may be a virtual
 * machine's network. */
static int check_functions(const struct question *question, struct err *err)
{
    char driver[DEVICE_WORD];
    glob_t functions;
    int rc = 0;

    sysfs_glob(&functions, DEVICE_PATH "/virtfn*", question->root, question->pci);
    for (size_t i = 0; i < functions.gl_pathc && rc == 0; i++) {
        sysfs_link(driver, sizeof driver, "%s/driver", functions.gl_pathv[i]);
        if (bind_device_driver_is_user(driver))
            rc = err_set(err, -EPERM,
                         "PCI device %s has a virtual function (%s) bound to %s, perhaps for a "
                         "virtual machine: release it first.",
                         question->pci, strrchr(functions.gl_pathv[i], '/') + 1, driver);
    }
    globfree(&functions);
    return rc;
}

static int check_permission(const struct question *question, struct err *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, DEVICE_PATH "/driver_override", question->root, question->pci);
    if (access(path, W_OK) == 0)
        return 0;
    return err_set(err, -EPERM,
                   "The driver of PCI device %s can't be changed (%s: %s): be root, outside "
                   "containers that see /sys read-only.",
                   question->pci, path, strerror(errno));
}

static int check_guard(const struct question *question, struct err *err)
{
    return question->place->kernel->guard(question->pci, question->request->driver, err);
}

/* Does a kernel driver drive this other device of an IOMMU group? `driver` is its name. */
static bool keeps_group(const struct question *question, const char *other,
                        char driver[static DEVICE_WORD])
{
    const struct bind_request *request = question->request;

    for (size_t i = 0; i < request->count; i++)
        if (strcmp(request->devices[i], other) == 0)
            return false;
    bind_device_driver(question->root, other, driver);
    return driver[0] != '\0' && strcmp(driver, "vfio-pci") != 0 &&
           sysfs_number(-1, DEVICE_PATH "/class", question->root, other) >> 16 != CLASS_BRIDGE;
}

/* VFIO gives a group away only as a whole: every other device of it but bridges must be without a
 * kernel driver, or at vfio-pci too (Documentation/driver-api/vfio.rst). */
static int check_group(const struct question *question, struct err *err)
{
    char group[DEVICE_WORD], driver[DEVICE_WORD], unsafe[2];
    glob_t members;
    int rc = 0;

    if (strcmp(question->request->driver, "vfio-pci") != 0)
        return 0;
    sysfs_link(group, sizeof group, DEVICE_PATH "/iommu_group", question->root, question->pci);
    sysfs_line(unsafe, sizeof unsafe, "%s/sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
               question->root);
    if (group[0] == '\0' && unsafe[0] == 'Y')
        return 0;
    if (group[0] == '\0')
        return err_set(
            err, -EPERM,
            "PCI device %s has no IOMMU group, so vfio-pci can't have it: switch the IOMMU on in "
            "the firmware and on the kernel's command line (intel_iommu=on), or bind to "
            "uio_pci_generic, or allow vfio's unsafe no-IOMMU mode.",
            question->pci);
    sysfs_glob(&members, DEVICE_PATH "/iommu_group/devices/*", question->root, question->pci);
    for (size_t i = 0; i < members.gl_pathc && rc == 0; i++) {
        const char *other = strrchr(members.gl_pathv[i], '/') + 1;

        if (keeps_group(question, other, driver))
            rc = err_set(
                err, -EPERM,
                "PCI device %s shares its IOMMU group with %s, which %s drives: VFIO gives groups "
                "away as a whole, so bind that too, unbind it, or use another port.",
                question->pci, other, driver);
    }
    globfree(&members);
    return rc;
}

int bind_check_device(const struct bind_place *place, const struct bind_request *request,
                      const char *pci, struct err *err)
{
    static int (*const checks[])(const struct question *, struct err *) = {
        check_kind,       check_present_driver, check_interfaces, check_functions,
        check_permission, check_guard,          check_group};
    struct question question = {
        .place = place, .request = request, .root = place->root, .pci = pci};
    int rc = 0;

    bind_device_driver(place->root, pci, question.driver);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && rc == 0; i++)
        rc = checks[i](&question, err);
    return rc;
}
