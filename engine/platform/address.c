/* SPDX-License-Identifier: BSD-3-Clause */
#include "address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
              "a port is at one place");

int address_parse(const char *text, struct sockaddr_storage *address, struct err *err)
{
    const char *colon = strrchr(text, ':'), *digits = colon != NULL ? colon + 1 : "";
    size_t length = colon != NULL ? (size_t)(colon - text) : 0, count = strlen(digits);
    bool v6 = length > 2 && text[0] == '[' && text[length - 1] == ']';
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    char host[INET6_ADDRSTRLEN + 2] = "";
    unsigned long port = strtoul(digits, NULL, 10);

    memset(address, 0, sizeof *address);
    if (length < sizeof host)
        memcpy(host, text + v6, length - 2 * (size_t)v6);
    /* Digits only: strtoul() accepts signs and blanks, too. */
    if (count == 0 || count > 5 || strspn(digits, "0123456789") != count || port > UINT16_MAX ||
        inet_pton(v6 ? AF_INET6 : AF_INET, host,
                  v6 ? (void *)&((struct sockaddr_in6 *)address)->sin6_addr : &v4->sin_addr) != 1)
        return err_set(err, -EINVAL,
                       "'%s' is not an address and port (192.0.2.1:7600, [2001:db8::1]:7600)",
                       text);
    address->ss_family = v6 ? AF_INET6 : AF_INET;
    v4->sin_port = htons((uint16_t)port);
    return 0;
}

const void *address_bytes(const void *address)
{
    return ((const struct sockaddr *)address)->sa_family == AF_INET6
               ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
               : &((const struct sockaddr_in *)address)->sin_addr;
}

bool address_same(const void *a, const void *b)
{
    sa_family_t family = ((const struct sockaddr *)a)->sa_family;

    return family == ((const struct sockaddr *)b)->sa_family &&
           memcmp(address_bytes(a), address_bytes(b), family == AF_INET6 ? 16 : 4) == 0;
}

const char *address_text(const struct sockaddr_storage *address, char text[ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "";

    inet_ntop(address->ss_family, address_bytes(address), host, sizeof host);
    snprintf(text, ADDRESS_TEXT_MAX, address->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
             ntohs(((const struct sockaddr_in *)address)->sin_port));
    return text;
}
