/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A layer between a program and libibverbs (LD_PRELOAD): no device has UC queue pairs. So tests see
 * the errors of devices that can do less than Soft-RoCE.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *wanted)
{
    struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *) =
        (struct ibv_qp * (*)(struct ibv_pd *, struct ibv_qp_init_attr *))
            dlsym(RTLD_NEXT, "ibv_create_qp");

    if (wanted->qp_type == IBV_QPT_UC) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    return create(pd, wanted);
}
