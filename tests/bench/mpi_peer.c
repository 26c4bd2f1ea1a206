/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The peer of collectives_mpi.py and barrier_mpi.py, compiled with mpicc; below mpirun. A loop
 * before is not measured.
 *
 * mpi_peer (FUNCTION BYTES CALLS)...: times of Open MPI's collectives as IMB-MPI1 takes them: a
 * barrier, then a loop of so many calls, timed as a whole by each rank. Prints a line for each:
 * function, bytes, and the rank's time of a call in microseconds: least, mean and greatest over the
 * ranks. The root of Bcast is rank 0 (IMB's goes round).
 *
 * mpi_peer barrier CALLS: how long each MPI_Barrier takes on each rank, in ns, one a line.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_S 1e6

struct buffers {
    float *send, *receive;
    int bytes;
};

typedef void (*call_fn)(const struct buffers *);

static void allreduce(const struct buffers *b)
{
    int count = b->bytes / (int)sizeof(float);

    MPI_Allreduce(b->send, b->receive, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(const struct buffers *b)
{
    MPI_Alltoall(b->send, b->bytes, MPI_BYTE, b->receive, b->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void bcast(const struct buffers *b)
{
    MPI_Bcast(b->send, b->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    call_fn call;
} functions[] = {{"allreduce", allreduce}, {"alltoall", alltoall}, {"bcast", bcast}};

static call_fn find(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].call;
    return NULL;
}

/* Return the microseconds of a call. */
static double loop(call_fn call, const struct buffers *b, int calls)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start_s = MPI_Wtime();

    for (int i = 0; i < calls; i++)
        call(b);
    return (MPI_Wtime() - start_s) / calls * US_PER_S;
}

static void measure(const char *name, call_fn call, const struct buffers *b, int calls)
{
    int rank = 0, ranks = 0;
    double least = 0, sum = 0, greatest = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    loop(call, b, calls);
    double us = loop(call, b, calls);

    MPI_Reduce(&us, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&us, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&us, &greatest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s %d %.3f %.3f %.3f\n", name, b->bytes, least, sum / ranks, greatest);
}

/* Print the time of each single barrier. */
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
    int ranks = 0, status = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 3 && strcmp(argv[1], "barrier") == 0)
        status = barriers(atoi(argv[2]));
    for (int i = 1; status == 0 && i + 2 < argc; i += 3) {
        call_fn call = find(argv[i]);
        int bytes = atoi(argv[i + 1]), calls = atoi(argv[i + 2]);
        size_t room = ((size_t)bytes + 1) * (size_t)ranks;
        struct buffers b = {calloc(1, room), calloc(1, room), bytes};

        if (call == NULL || bytes < 0 || calls < 1 || b.send == NULL || b.receive == NULL)
            status = 2;
        else
            measure(argv[i], call, &b, calls);
        free(b.send);
        free(b.receive);
    }
    MPI_Finalize();
    return status;
}
