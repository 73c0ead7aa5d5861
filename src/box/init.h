#pragma once
/* What the parts of holt-init share: see init.c for what the program is. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/wire.h"

/* Sends one message, with a descriptor when fd >= 0. A hub that is gone ends this process, and
 * with it the sandbox. */
void init_send(const void *msg, size_t n, int fd);

/* Handles one IM_FILE message of n bytes (NUL-terminated after its end). */
void init_file(const struct im_file *msg, size_t n);

/* Tells the file half that the helper process of a removal has ended; 0 when pid is none. */
int init_file_reaped(pid_t pid, int status);

/* Whether that is a process which removes something for us. */
bool init_file_helps(pid_t pid);

/* Lets go of what the hub before was writing; no removal of its tells of its end. */
void init_file_reset(void);

/* Handles one IM_PROCESS message. */
void init_process(const struct im_process *msg);

/* As init_file_reaped(), of the helper process of a list. */
int init_process_reaped(pid_t pid, int status);

/* Ends what was listed for the hub before: nothing of it is sent any more. */
void init_process_reset(void);

/* Reads /proc/PID/stat into text. The parenthesis behind the name of the process, which is its own choice;
 * NULL where there is no such process. */
char *init_proc_stat(const char *pid, char *text, size_t size);
