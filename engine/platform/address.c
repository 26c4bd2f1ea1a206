/* SPDX-License-Identifier: BSD-3-Clause */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char *text, struct err *err)
{
    return err_set(err, -EINVAL,
                   "'%s' is not an address and port (192.0.2.1:7600, [2001:db8::1]:7600)", text);
}

/* Digits only: strtoul takes signs and blanks, too. */
static int parse_port(const char *text, uint16_t *port)
{
    size_t length = strlen(text);
    unsigned long value = strtoul(text, NULL, 10);

    if (length == 0 || length > 5 || strspn(text, "0123456789") != length || value > UINT16_MAX)
        return -EINVAL;
    *port = (uint16_t)value;
    return 0;
}

int address_parse(const char *text, struct sockaddr_storage *address, struct err *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2] = "";
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    bool bracketed = length > 2 && text[0] == '[' && text[length - 1] == ']';
    uint16_t port;

    memset(address, 0, sizeof *address);
    if (colon == NULL || parse_port(colon + 1, &port) < 0 || length >= sizeof host)
        return refuse(text, err);
    memcpy(host, text + bracketed, length - 2 * (size_t)bracketed);
    if (bracketed && inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        return 0;
    }
    if (!bracketed && inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return 0;
    }
    return refuse(text, err);
}

void address_format(const struct sockaddr_storage *address, char *text, size_t size)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    char host[INET6_ADDRSTRLEN] = "";

    if (address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(text, size, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(text, size, "%s:%u", host, ntohs(v4->sin_port));
    }
}
