#pragma once
/* Declarations that the parts of holt-init share; init.c says what the program does. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/wire/wire.h"

/* Large and seldom used variables are placed behind all others that are zero at the start
 * (meson.build makes the linker sort by these names), so that an idle init has touched few pages:
 * there may be a thousand of them. */
#define INIT_LARGE __attribute__((section(".bss.zz.large")))

/* Sends one message, with a descriptor when fd >= 0. Returns -1 with errno if the descriptor can't
 * be sent, for example because too many of this user are in flight: then nothing is sent. If the
 * hub is gone, this process exits, and with it the sandbox. */
int init_send(const void *msg, size_t n, int fd);

/* Handles one IM_FILE message of n bytes (NUL-terminated after its end); fd came with it, or is
 * -1. */
void init_file(const struct im_file *msg, size_t n, int fd);

/* Returns an O_PATH descriptor of the file that path leads to, if it is one of the sandbox's own: a
 * regular file, a directory, or either. -1 with the reason in *d. */
enum init_want { INIT_FILE = 1, INIT_DIRECTORY = 2 };
int init_open_known(const char *path, unsigned want, struct im_file_done *d);

/* Opens the file of an O_PATH descriptor for use. */
int init_reopen(int fd, int flags);

/* Tells file.c that the helper process of a removal has ended; 0 when pid is none of them. */
int init_file_reaped(pid_t pid, int status);

/* Whether pid is a process that removes something for us. */
bool init_file_helps(pid_t pid);

/* Drops the files that the last hub was writing; the end of its removals is not reported. */
void init_file_reset(void);

/* Handles FILE_OP_ARCHIVE, FILE_OP_UPLOAD and FILE_OP_WATCH; names: the bytes after the path, up to
 * end. */
void init_tree(const struct im_file *msg, const char *path, const char *names, const char *end,
	       int fd);

/* The loop of FILE_OP_WATCH's helper, until it fails or nobody reads; dir is a directory. */
void init_watch(int dir, bool recursive, int out, struct tree_failure *f);

/* fork() of a process that the kernel ends before this one for want of memory. */
pid_t init_fork(void);

/* Starts a helper process for a long task: returns 0 in that process, which ends with _exit(). -1:
 * no more are possible. If it ends with a status other than 0, on_death is called here. */
pid_t init_helper_start(uint32_t id, void (*on_death)(uint32_t id));
/* Kills the helper with that id, if it has not ended; on_death follows. */
void init_helper_stop(uint32_t id);
bool init_helps(pid_t pid);
/* Notes that a helper process has ended, if pid is one. */
void init_helper_reaped(pid_t pid, int status);
/* Kills them all: nothing more is sent from them. */
void init_helper_reset(void);

/* Signals the process group of a program; 0 or an errno, ESRCH if it has ended. */
int init_signal_exec(uint32_t id, int signal);

/* Handles one IM_PROCESS message. */
void init_process(const struct im_process *msg);

/* Reads /proc/PID/stat; the name in *ret is valid until the next call. False: there is no such
 * process. */
struct stat_line;
bool init_proc_stat(const char *pid, struct stat_line *ret);
