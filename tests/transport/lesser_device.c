/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between a program and libibverbs (LD_PRELOAD): every device has neither RDMA read nor UC queue
 * pairs. So tests see what is said of lesser devices than Soft-RoCE.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
    int (*query)(struct ibv_context *, struct ibv_device_attr *) =
        (int (*)(struct ibv_context *, struct ibv_device_attr *))dlsym(RTLD_NEXT,
                                                                       "ibv_query_device");
    int code = query(context, attributes);

    attributes->max_qp_rd_atom = 0;
    attributes->max_qp_init_rd_atom = 0;
    return code;
}

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
