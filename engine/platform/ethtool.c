/* SPDX-License-Identifier: BSD-3-Clause */
#include "ethtool.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>

int ethtool_ask(int fd, const char *iface, void *command)
{
    struct ifreq request = {.ifr_data = command};

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", iface);
    return ioctl(fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
}

struct ethtool_drvinfo ethtool_driver(int fd, const char *iface)
{
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};

    return ethtool_ask(fd, iface, &driver) == 0 ? driver : (struct ethtool_drvinfo){0};
}

uint32_t ethtool_number(int fd, const char *iface, uint32_t command)
{
    struct ethtool_value value = {.cmd = command};

    return ethtool_ask(fd, iface, &value) == 0 ? value.data : 0;
}

uint64_t ethtool_speed_bps(int fd, const char *iface)
{
    struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
    uint32_t mbps;

    if (ethtool_ask(fd, iface, &settings) != 0)
        return 0;
    mbps = ethtool_cmd_speed(&settings);
    return mbps == (uint32_t)SPEED_UNKNOWN ? 0 : mbps * UINT64_C(1000000);
}
