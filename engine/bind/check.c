/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include "device.h"
#include "guard_host.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASS_NETWORK 0x02 /* PCI's base class: the upper 8 of 24 bits */
#define CLASS_BRIDGE 0x06

/* DPDK drives these through their kernel driver (verbs), which has to stay. */
static const char *const bifurcated[] = {"mlx4_core", "mlx5_core", "mana"};

int bind_check_driver(const struct bind_place *place, const char *driver, struct err *err)
{
    if (!bind_device_driver_is_user(driver))
        return err_set(err, -EINVAL,
                       "DPDK reaches no device through the driver %s: give vfio-pci, "
                       "uio_pci_generic or igb_uio.",
                       driver);
    if (!bind_device_driver_known(place->root, driver))
        return err_set(err, -ENODEV, "The driver %s is not loaded: `modprobe %s`.", driver, driver);
    return 0;
}

static int check_kind(const struct bind_place *place, const char *pci, struct err *err)
{
    long class_code;

    if (!guard_host_is_pci(pci))
        return err_set(
            err, -EINVAL,
            "%.40s is not a PCI address; write it as 0000:3b:00.0 (lspci -D shows them).", pci);
    if (!bind_device_exists(place->root, pci))
        return err_set(err, -ENODEV,
                       "There is no PCI device %s; `lspci -D -d ::02xx` lists the network devices.",
                       pci);
    class_code = bind_device_number(place->root, pci, "class");
    if (class_code >> 16 != CLASS_NETWORK)
        return err_set(
            err, -EINVAL,
            "PCI device %s is not a network device (class 0x%06lx); `lspci -D -d ::02xx` "
            "lists those.",
            pci, class_code);
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

static int check_present_driver(const struct bind_place *place, const char *pci, struct err *err)
{
    char driver[DEVICE_WORD];

    bind_device_driver(place->root, pci, driver);
    if (bind_device_driver_is_user(driver))
        return err_set(err, -EPERM,
                       "PCI device %s is bound to %s already, and no journal says by whom or what "
                       "it was before: use it as it is (leave `bind` out), or give it back to its "
                       "own driver first (`driverctl unset-override %s`).",
                       pci, driver, pci);
    if (!bind_needed(place, pci))
        return err_set(err, -EINVAL,
                       "PCI device %s is driven by %s, through which DPDK works: it needs no "
                       "binding, leave it out.",
                       pci, driver);
    return 0;
}

/* A device of another namespace shows no interface here, and nobody knows what that one carries. */
static int check_visible(const struct bind_place *place, const char *pci, struct err *err)
{
    struct device_interfaces interfaces;
    char driver[DEVICE_WORD];

    bind_device_driver(place->root, pci, driver);
    bind_device_interfaces(place->root, pci, &interfaces);
    if (driver[0] == '\0' || interfaces.count > 0)
        return 0;
    return err_set(
        err, -EPERM,
        "PCI device %s is driven by %s and shows no interface in this network namespace, "
        "so that it is not known what it carries: move its interface here first (`ip -n "
        "NAME link set dev IFACE netns 1`), or unbind it.",
        pci, driver);
}

/* What sits on an interface, or holds it, goes away with it and can't be given back. */
static int check_interface(const struct bind_place *place, const char *pci, const char *name,
                           struct err *err)
{
    char path[PATH_MAX];
    glob_t uppers = {0};
    const char *upper;
    int rc = 0;

    snprintf(path, sizeof path, "%s/sys/class/net/%s/upper_*", place->root, name);
    if (glob(path, 0, NULL, &uppers) != 0)
        return 0;
    upper = strrchr(uppers.gl_pathv[0], '/') + 1 + strlen("upper_");
    snprintf(path, sizeof path, "%s/sys/class/net/%s/bonding", place->root, upper);
    if (access(path, F_OK) == 0)
        rc = err_set(err, -EPERM,
                     "Interface %s of PCI device %s is a member of bond %s, which would lose it: "
                     "give a port that no bond uses, or take it out first (`ip link set dev %s "
                     "nomaster`).",
                     name, pci, upper, name);
    else
        rc = err_set(err, -EPERM,
                     "%s sits on interface %s of PCI device %s and would go away with it: take it "
                     "off first (`ip link set dev %s nomaster`, or delete %s).",
                     upper, name, pci, name, upper);
    globfree(&uppers);
    return rc;
}

/* A device of software RDMA (rxe) names its interface in `parent`, and is made by hand. */
static int check_rdma(const struct bind_place *place, const char *name, struct err *err)
{
    char pattern[PATH_MAX], parent[IF_NAMESIZE + 1];
    glob_t files = {0};
    int rc = 0;

    snprintf(pattern, sizeof pattern, "%s/sys/class/infiniband/*/parent", place->root);
    if (glob(pattern, 0, NULL, &files) != 0)
        return 0;
    for (size_t i = 0; i < files.gl_pathc && rc == 0; i++) {
        FILE *file = fopen(files.gl_pathv[i], "re");
        bool known = file != NULL && fgets(parent, sizeof parent, file) != NULL;

        if (file != NULL)
            fclose(file);
        parent[known ? strcspn(parent, "\n") : 0] = '\0';
        *strrchr(files.gl_pathv[i], '/') = '\0';
        if (strcmp(parent, name) == 0)
            rc = err_set(err, -EPERM,
                         "RDMA device %s sits on interface %s and would go away with it: remove it "
                         "first (`rdma link delete %s`).",
                         strrchr(files.gl_pathv[i], '/') + 1, name,
                         strrchr(files.gl_pathv[i], '/') + 1);
    }
    globfree(&files);
    return rc;
}

static int check_interfaces(const struct bind_place *place, const char *pci, struct err *err)
{
    struct device_interfaces interfaces;
    int rc = 0;

    bind_device_interfaces(place->root, pci, &interfaces);
    for (size_t i = 0; i < interfaces.count && rc == 0; i++) {
        rc = check_interface(place, pci, interfaces.list[i].name, err);
        if (rc == 0)
            rc = check_rdma(place, interfaces.list[i].name, err);
    }
    return rc;
}

/* Virtual functions go away with their physical one; one at a user's driver may be a virtual
 * machine's network. */
static int check_functions(const struct bind_place *place, const char *pci, struct err *err)
{
    char pattern[PATH_MAX];
    glob_t functions = {0};
    int rc = 0;

    bind_device_path(pattern, sizeof pattern, place->root, pci, "virtfn*");
    if (glob(pattern, 0, NULL, &functions) != 0)
        return 0;
    for (size_t i = 0; i < functions.gl_pathc && rc == 0; i++) {
        const char *name = strrchr(functions.gl_pathv[i], '/') + 1;
        char link[DEVICE_WORD], driver[DEVICE_WORD];

        snprintf(link, sizeof link, "%.20s/%.32s", pci, name);
        bind_device_driver(place->root, link, driver);
        if (bind_device_driver_is_user(driver))
            rc = err_set(err, -EPERM,
                         "PCI device %s has a virtual function (%s) bound to %s, perhaps for a "
                         "virtual machine: release it first.",
                         pci, name, driver);
    }
    globfree(&functions);
    return rc;
}

static bool is_requested(const struct bind_request *request, const char *pci)
{
    for (size_t i = 0; i < request->count; i++)
        if (strcmp(request->devices[i], pci) == 0)
            return true;
    return false;
}

/* VFIO gives a group away only as a whole: every other device of it but bridges must be without a
 * kernel driver, or at vfio-pci too (Documentation/driver-api/vfio.rst). */
static int check_neighbour(const struct bind_place *place, const struct bind_request *request,
                           const char *pci, const char *other, struct err *err)
{
    char driver[DEVICE_WORD];

    if (is_requested(request, other) ||
        bind_device_number(place->root, other, "class") >> 16 == CLASS_BRIDGE)
        return 0;
    bind_device_driver(place->root, other, driver);
    if (driver[0] == '\0' || strcmp(driver, "vfio-pci") == 0)
        return 0;
    return err_set(
        err, -EPERM,
        "PCI device %s shares its IOMMU group with %s, which %s drives: VFIO gives groups "
        "away as a whole, so bind that too, unbind it, or use another port.",
        pci, other, driver);
}

static bool without_iommu(const char *root)
{
    char path[PATH_MAX], answer = 'N';
    FILE *file;

    snprintf(path, sizeof path, "%s/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", root);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fread(&answer, 1, 1, file) != 1)
        answer = 'N';
    fclose(file);
    return answer == 'Y';
}

static int check_group(const struct bind_place *place, const struct bind_request *request,
                       const char *pci, struct err *err)
{
    char group[DEVICE_WORD], pattern[PATH_MAX];
    glob_t members = {0};
    int rc = 0;

    if (strcmp(request->driver, "vfio-pci") != 0)
        return 0;
    bind_device_group(place->root, pci, group);
    if (group[0] == '\0' && without_iommu(place->root))
        return 0;
    if (group[0] == '\0')
        return err_set(
            err, -EPERM,
            "PCI device %s has no IOMMU group, so vfio-pci can't have it: switch the IOMMU on in "
            "the firmware and on the kernel's command line (intel_iommu=on), or bind to "
            "uio_pci_generic, or allow vfio's unsafe no-IOMMU mode.",
            pci);
    bind_device_path(pattern, sizeof pattern, place->root, pci, "iommu_group/devices/*");
    if (glob(pattern, 0, NULL, &members) != 0)
        return 0;
    for (size_t i = 0; i < members.gl_pathc && rc == 0; i++)
        rc = check_neighbour(place, request, pci, strrchr(members.gl_pathv[i], '/') + 1, err);
    globfree(&members);
    return rc;
}

static int check_permission(const struct bind_place *place, const char *pci, struct err *err)
{
    char path[PATH_MAX];

    bind_device_path(path, sizeof path, place->root, pci, "driver_override");
    if (access(path, W_OK) == 0)
        return 0;
    return err_set(err, -EPERM,
                   "The driver of PCI device %s can't be changed (%s: %s): be root, outside "
                   "containers that see /sys read-only.",
                   pci, path, strerror(errno));
}

int bind_check_device(const struct bind_place *place, const struct bind_request *request,
                      const char *pci, struct err *err)
{
    static int (*const checks[])(const struct bind_place *, const char *, struct err *) = {
        check_kind,       check_present_driver, check_visible,
        check_interfaces, check_functions,      check_permission};
    int rc = 0;

    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && rc == 0; i++)
        rc = checks[i](place, pci, err);
    if (rc == 0)
        rc = place->kernel->guard(pci, request->driver, err);
    if (rc == 0)
        rc = check_group(place, request, pci, err);
    return rc;
}
