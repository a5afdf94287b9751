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
        /* Some ask those of these what to do where a wait fails. */
        TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        TRY(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
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

/* What is returned where a message has another length than is awaited; no error of MPI's is less than 0. */
enum { OTHER_LENGTH = -1 };

/* Whether something is under way that must not be ended in an orderly way: MPI may end the process out of one of its calls. */
static int is_under_way = 0;

static int pieces(const Parcel *parcel) { return (int)((parcel->count + MOST - 1) / MOST); }

static int piece(const Parcel *own, long long first) { return (int)(own->count - first < MOST ? own->count - first : MOST); }

/* Starts to send parcels. */
static int start(const Parcel *sent, int count, MPI_Request *next) {
    for (int n = 0; n < count; n++) {
        const Parcel *own = &sent[n];
        for (long long first = 0; first < own->count; first += MOST) {
            TRY(MPI_Isend(own->bytes + first, piece(own, first), MPI_BYTE, own->peer, own->tag, ranks, next++));
        }
    }
    return MPI_SUCCESS;
}

/* Receives parcels, none of which is longer or shorter than there is room for. */
static int receive(const Parcel *awaited, int count) {
    for (int n = 0; n < count; n++) {
        const Parcel *own = &awaited[n];
        for (long long first = 0; first < own->count; first += MOST) {
            MPI_Message message;
            MPI_Status status;
            int some = 0;
            TRY(MPI_Mprobe(own->peer, own->tag, ranks, &message, &status));
            TRY(MPI_Get_count(&status, MPI_BYTE, &some));
            if (some != piece(own, first)) return OTHER_LENGTH;
            TRY(MPI_Mrecv(own->bytes + first, some, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        }
    }
    return MPI_SUCCESS;
}

/* Sends and receives. Where it fails, what is sent may still be looked at: it has to stay. */
int stencilc_mpi_swap(const Parcel *sent, int sent_count, const Parcel *awaited, int awaited_count) {
    long long all = 0;
    for (int n = 0; n < sent_count; n++) all += pieces(&sent[n]);
    if (all > INT_MAX) return MPI_ERR_COUNT;
    MPI_Request *requests = malloc((size_t)(all + 1) * sizeof *requests);
    if (!requests) return MPI_ERR_NO_MEM;
    is_under_way = 1;
    int told = start(sent, sent_count, requests);
    if (told == MPI_SUCCESS) told = receive(awaited, awaited_count);
    if (told == MPI_SUCCESS) told = MPI_Waitall((int)all, requests, MPI_STATUSES_IGNORE);
    is_under_way = told != MPI_SUCCESS;
    if (told == MPI_SUCCESS) free(requests);
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
void stencilc_mpi_abort(int status) {
    is_under_way = 1;
    MPI_Abort(ranks, status);
}

/* Ends this one, once it is done. */
void stencilc_mpi_end(void) {
    int is_ended = 0;
    if (is_under_way) return;
    if (MPI_Finalized(&is_ended) != MPI_SUCCESS || is_ended) return;
    if (ranks != MPI_COMM_NULL) MPI_Comm_free(&ranks);
    if (is_begun_here) MPI_Finalize();
}
