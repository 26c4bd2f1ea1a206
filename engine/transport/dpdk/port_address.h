/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a port tells its partners: its addresses, its largest frame, its line's rate.
 */
#ifndef ENGINE_DPDK_PORT_ADDRESS_H
#define ENGINE_DPDK_PORT_ADDRESS_H

#include "port_state.h"

void port_address(struct transport_port *port, struct blob *blob);

/* A partner's blob: where it is and the largest frame that it takes (without a tag). False: not
 * the address of a DPDK port. `end->rank` is left alone. */
bool port_read_address(const struct blob *blob, struct frame_end *end, bool has_ip[2],
                       uint32_t *frame_max);
/* And the layer-1 rate of its line; 0: it does not know. Of a blob that was read. */
uint64_t port_read_line_bps(const struct blob *blob);

#endif
