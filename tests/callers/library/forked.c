/* A process that was forked from one that has a run is told so by each call of it, and waits for nobody. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stencilc.h>

static StencilcRun* run = NULL;
static double t[4];

static int told(StencilcStatus status)
{
    return status == STENCILC_STATUS_CALL && strstr(stencilc_message(), "was forked") != NULL;
}

static int child(void)
{
    const StencilcArray array = {sizeof array, "t", t, STENCILC_F64, 0, STENCILC_HOST, 2, {1, 4}, {0}};
    uint64_t done, total;
    double value;
    return told(stencilc_run_get(run, &array)) && told(stencilc_run_put(run, &array)) && told(stencilc_run_step(run, 1, NULL)) &&
           told(stencilc_run_wait(run)) && told(stencilc_run_progress(run, &done, &total)) &&
           told(stencilc_run_number(run, "t", &value)) && told(stencilc_run_save(run, "forked.npz"));
}

int main(void)
{
    StencilcStencil* stencil = NULL;
    const StencilcArray array = {sizeof array, "t", t, STENCILC_F64, 0, STENCILC_HOST, 3, {1, 1, 4}, {0}};
    int status = 0;
    pid_t pid;
    if (stencilc_compile("stencil half { in t; out u; u = 0.5 * t }; program p { inout t; repeat 3 { t = half(t) } }", "p.stn", "p",
                         &stencil) != STENCILC_STATUS_OK) {
        return 1;
    }
    if (stencilc_set_device(stencil, "cpu") != STENCILC_STATUS_OK) return 2;
    if (stencilc_run_begin(stencil, NULL, &array, 1, &run) != STENCILC_STATUS_OK) return 3;
    if (stencilc_run_step(run, 1, NULL) != STENCILC_STATUS_OK) return 4;
    pid = fork();
    if (pid == 0) {
        /* Whoever waits for ever is ended. */
        alarm(60);
        _exit(child() ? 0 : 1);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return 5;
    if (stencilc_run_get(run, &array) != STENCILC_STATUS_OK) return 6;
    puts("all was told");
    return 0;
}
