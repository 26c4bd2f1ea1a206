/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection_pool.h"

#include "rdma_cm.h"

#include <errno.h>
#include <string.h>

static void evict(struct transport_port *port, size_t max)
{
    struct cached_qp *cached;

    while ((cached = qp_cache_evict(&port->cache, max)) != NULL)
        verbs_qp_free((struct verbs_qp *)(void *)cached);
}

void connection_pool_open(struct transport_port *port)
{
    qp_cache_init(&port->cache);
    verbs_cm_listen(port);
    port->destroyer = qp_destroyer_start();
}

bool connection_pool_close(struct transport_port *port)
{
    evict(port, 0);
    if (!qp_destroyer_stop(port->destroyer))
        return false;
    verbs_cm_close(port);
    return true;
}

/* Queue pairs that nobody uses make room for what is needed now. */
static int make_new(struct transport_port *port, const struct qp_config *config,
                    struct verbs_qp **qp, struct err *err)
{
    int rc = verbs_qp_make(qp, port, config, err);

    while (rc == -ENOMEM && port->cache.count > 0) {
        err->text[0] = '\0';
        evict(port, port->cache.count / 2);
        rc = verbs_qp_make(qp, port, config, err);
    }
    return rc;
}

int connection_pool_acquire(struct transport_port *port, const struct qp_config *config,
                            struct verbs_qp **qp, struct err *err)
{
    struct cached_qp *cached = qp_cache_take(&port->cache, config);

    if (cached == NULL)
        return make_new(port, config, qp, err);
    *qp = (struct verbs_qp *)(void *)cached;
    (*qp)->config = *config;
    (*qp)->reused = true;
    memset((*qp)->control, 0, sizeof *(*qp)->control);
    return 0;
}

int connection_pool_replace(struct verbs_qp **qp, struct err *err)
{
    struct transport_port *port = (*qp)->port;
    struct qp_config config = (*qp)->config;

    verbs_qp_free(*qp);
    *qp = NULL;
    return make_new(port, &config, qp, err);
}

void connection_pool_keep(struct verbs_qp *qp, size_t max)
{
    qp_cache_put(&qp->port->cache, &qp->cached);
    evict(qp->port, max);
}
