/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The peer of barrier_mpi.py, compiled with mpicc; below mpirun. A loop before is not measured.
 *
 * mpi_peer CALLS: how long each MPI_Barrier takes on each rank, in ns, one a line.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int barriers(int calls)
{
    int rank = 0, ranks = 0;
    double *took_s, *all_s;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    took_s = calloc((size_t)calls + 1, sizeof *took_s);
    all_s = calloc((size_t)calls * (size_t)ranks + 1, sizeof *all_s);
    if (took_s == NULL || all_s == NULL)
        return 2;
    for (int i = 0; i < 2 * calls; i++) {
        double start_s = MPI_Wtime();

        MPI_Barrier(MPI_COMM_WORLD);
        took_s[i % calls] = MPI_Wtime() - start_s;
    }
    MPI_Gather(took_s, calls, MPI_DOUBLE, all_s, calls, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < calls * ranks; i++)
        printf("%.0f\n", all_s[i] * 1e9);
    free(took_s);
    free(all_s);
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int status = argc == 2 ? barriers(atoi(argv[1])) : 2;

    MPI_Finalize();
    return status;
}
