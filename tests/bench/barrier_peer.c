/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The peer of barrier_node.c, compiled by barrier_mpi.py with mpicc: how long each MPI_Barrier
 * takes on each rank, in ns, one a line. The same number of barriers, not measured, go before.
 *
 * Usage: barrier_peer BARRIERS, below mpirun
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pass(int barriers, int64_t *took_ns)
{
    for (int i = 0; i < barriers; i++) {
        int64_t start_ns = now_ns();

        MPI_Barrier(MPI_COMM_WORLD);
        took_ns[i] = now_ns() - start_ns;
    }
}

int main(int argc, char **argv)
{
    int barriers = argc == 2 ? atoi(argv[1]) : 0;
    int64_t *took_ns = calloc((size_t)barriers + 1, sizeof *took_ns);
    int64_t *all_ns = NULL;
    int rank = 0, ranks = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0)
        all_ns = calloc((size_t)barriers * (size_t)ranks + 1, sizeof *all_ns);
    if (barriers < 1 || took_ns == NULL || (rank == 0 && all_ns == NULL))
        MPI_Abort(MPI_COMM_WORLD, 1);
    pass(barriers, took_ns);
    pass(barriers, took_ns);
    MPI_Gather(took_ns, barriers, MPI_INT64_T, all_ns, barriers, MPI_INT64_T, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < barriers * ranks; i++)
        printf("%lld\n", (long long)all_ns[i]);
    free(took_ns);
    free(all_ns);
    MPI_Finalize();
    return 0;
}
