/* All of MPI that ranks need, compiled once by the machine's own mpicc: what MPI_COMM_WORLD is differs from one MPI to the next. */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

/* Bytes for another rank, or room for those of another. */
typedef struct {
    char *bytes;
    long long count;
    int peer;
    int tag;
} Parcel;

/* The most bytes of one message: MPI counts with int. */
static const long long MOST = 1 << 30;

static MPI_Comm ranks = MPI_COMM_NULL;
static int is_begun_here = 0;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int told = (call);                                                                                             \
        if (told != MPI_SUCCESS) return told;                                                                          \
    } while (0)

void stencilc_mpi_end(void);

/* Begins, unless MPI was begun before: which rank this is and how many there are, of all and of those on this host. */
int stencilc_mpi_begin(int all[2], int here[2]) {
    int is_begun = 0, level = 0;
    MPI_Comm beside = MPI_COMM_NULL;
    TRY(MPI_Initialized(&is_begun));
    if (!is_begun) {
        TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level));
        is_begun_here = 1;
        /* Whoever has begun it and ends without a word is taken for one that has failed. */
        if (atexit(stencilc_mpi_end) != 0) return MPI_ERR_OTHER;
    }
    TRY(MPI_Comm_dup(MPI_COMM_WORLD, &ranks));
    TRY(MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN));
    TRY(MPI_Comm_rank(ranks, &all[0]));
    TRY(MPI_Comm_size(ranks, &all[1]));
    TRY(MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, all[0], MPI_INFO_NULL, &beside));
    TRY(MPI_Comm_rank(beside, &here[0]));
    TRY(MPI_Comm_size(beside, &here[1]));
    return MPI_Comm_free(&beside);
}

static int pieces(const Parcel *parcel) { return (int)((parcel->count + MOST - 1) / MOST); }

/* Starts to send parcels, or to receive them. */
static int start(const Parcel *parcels, int count, int receives, MPI_Request **next) {
    for (int n = 0; n < count; n++) {
        const Parcel *own = &parcels[n];
        for (long long first = 0; first < own->count; first += MOST) {
            int some = (int)(own->count - first < MOST ? own->count - first : MOST);
            MPI_Request *request = (*next)++;
            if (receives) {
                TRY(MPI_Irecv(own->bytes + first, some, MPI_BYTE, own->peer, own->tag, ranks, request));
            } else {
                TRY(MPI_Isend(own->bytes + first, some, MPI_BYTE, own->peer, own->tag, ranks, request));
            }
        }
    }
    return MPI_SUCCESS;
}

/* Sends and receives at once. What is shorter than was awaited is left as it was at its end. */
int stencilc_mpi_swap(const Parcel *sent, int sent_count, const Parcel *awaited, int awaited_count) {
    long long all = 0;
    for (int n = 0; n < sent_count; n++) all += pieces(&sent[n]);
    for (int n = 0; n < awaited_count; n++) all += pieces(&awaited[n]);
    if (all > INT_MAX) return MPI_ERR_COUNT;
    MPI_Request *requests = malloc((size_t)(all + 1) * sizeof *requests), *next = requests;
    if (!requests) return MPI_ERR_NO_MEM;
    int told = start(awaited, awaited_count, 1, &next);
    if (told == MPI_SUCCESS) told = start(sent, sent_count, 0, &next);
    if (told == MPI_SUCCESS) told = MPI_Waitall((int)all, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return told;
}

/* What an error means. */
void stencilc_mpi_text(int told, char *text, int room) {
    char all[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0, kept = 0;
    if (MPI_Error_string(told, all, &length) != MPI_SUCCESS) length = 0;
    for (; kept < length && kept + 1 < room; kept++) text[kept] = all[kept];
    if (room > 0) text[kept] = 0;
}

/* Ends all ranks, whatever they do. */
void stencilc_mpi_abort(int status) { MPI_Abort(ranks, status); }

/* Ends this one, once it is done. */
void stencilc_mpi_end(void) {
    int is_ended = 0;
    if (MPI_Finalized(&is_ended) != MPI_SUCCESS || is_ended) return;
    if (ranks != MPI_COMM_NULL) MPI_Comm_free(&ranks);
    if (is_begun_here) MPI_Finalize();
}
