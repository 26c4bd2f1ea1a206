/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_transports.h"

#include "registry.h"

static bool has_needs(const struct port_conf *conf, const struct transport *transport)
{
    if (transport_can(transport, TRANSPORT_NEEDS_IFACE))
        return conf->iface != NULL;
    if (transport_can(transport, TRANSPORT_NEEDS_RDMA))
        return conf->rdma != NULL;
    return conf->iface != NULL || conf->pci != NULL || conf->vdev != NULL;
}

const struct transport *port_transport(const struct doc_port *doc, unsigned place)
{
    if (doc->transports_count > 0)
        return place < doc->transports_count ? transport_find(doc->transports[place]) : NULL;
    for (unsigned i = 0; i <= place; i++)
        if (transports[i] == NULL)
            return NULL;
    return has_needs(&doc->conf, transports[place]) ? transports[place] : NULL;
}

bool port_transport_with(const struct doc_port *doc, unsigned capabilities)
{
    for (unsigned place = 0; place < DOC_TRANSPORTS_MAX; place++) {
        const struct transport *transport = port_transport(doc, place);

        if (transport != NULL && transport_can(transport, capabilities))
            return true;
    }
    return false;
}
