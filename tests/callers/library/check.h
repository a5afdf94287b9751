/* Looks at what is told of a wrong call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stencilc.h>

static void check(StencilcStatus found, StencilcStatus expected, const char* message, int line)
{
    if (found != expected || strncmp(stencilc_message(), message, strlen(message)) != 0) {
        printf("line %d: status %d instead of %d: %s\n", line, found, expected, stencilc_message());
        exit(1);
    }
    /* What a caller in C cannot know has no place in a message. */
    if (strstr(stencilc_message(), "Job::") != NULL || strstr(stencilc_message(), "Lent::") != NULL ||
        strstr(stencilc_message(), "--set") != NULL || strstr(stencilc_message(), "--in") != NULL) {
        printf("line %d: %s\n", line, stencilc_message());
        exit(1);
    }
}
