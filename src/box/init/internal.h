#pragma once
/* What the parts of holt-init share: see init.c for what the program is. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/wire/wire.h"

/* What is large and seldom used lies behind all else that is zero at the start (meson.build has the
 * linker sort by these names), so that an idle init has touched few pages: there may be a thousand
 * of them. */
#define INIT_LARGE __attribute__((section(".bss.zz.large")))

/* Sends one message, with a descriptor when fd >= 0. -1 with errno if the descriptor can't be sent,
 * as when too many of this user's are in flight: nothing is sent then. A hub that is gone ends this
 * process, and with it the sandbox. */
int init_send(const void *msg, size_t n, int fd);

/* Handles one IM_FILE message of n bytes (NUL-terminated after its end); fd came with it, or is
 * -1. */
void init_file(const struct im_file *msg, size_t n, int fd);

/* Names of files while they are written, with a number between: in place of one that is there, or
 * of none. Watches do not tell of them. */
#define INIT_TEMP_FRONT ".holt-"
#define INIT_TEMP_OLD ".tmp"
#define INIT_TEMP_NEW ".new"

/* An O_PATH descriptor of what path leads to, when that is one of the sandbox's own: a regular
 * file, a directory, or either; -1 with *d telling why. */
enum init_want { INIT_FILE = 1, INIT_DIRECTORY = 2 };
int init_open_known(const char *path, unsigned want, struct im_file_done *d);

/* Opens for real what an O_PATH descriptor names. */
int init_reopen(int fd, int flags);

/* Tells the file half that the helper process of a removal has ended; 0 when pid is none. */
int init_file_reaped(pid_t pid, int status);

/* Whether that is a process which removes something for us. */
bool init_file_helps(pid_t pid);

/* Lets go of what the hub before was writing; no removal of its tells of its end. */
void init_file_reset(void);

/* Handles FILE_OP_ARCHIVE, FILE_OP_UPLOAD and FILE_OP_WATCH; names: what follows the path, up to
 * end. */
void init_tree(const struct im_file *msg, const char *path, const char *names, const char *end,
	       int fd);

/* What the helper of FILE_OP_WATCH does until it fails or nobody reads; dir is a directory. */
void init_watch(int dir, bool recursive, int out, struct tree_failure *f);

/* Starts a process of its own for what takes long: 0 in that process, which ends by _exit(). -1:
 * there can't be another one. When it ends with another status than 0, on_death is called here. */
pid_t init_helper_start(uint32_t id, void (*on_death)(uint32_t id));
/* Kills the helper of that id, where it has not ended; on_death follows. */
void init_helper_stop(uint32_t id);
bool init_helps(pid_t pid);
/* As init_file_reaped(). */
int init_helper_reaped(pid_t pid, int status);
/* Kills them all: nothing of them is sent any more. */
void init_helper_reset(void);

/* Handles one IM_PROCESS message. */
void init_process(const struct im_process *msg);

/* As init_file_reaped(), of the helper process of a list. */
int init_process_reaped(pid_t pid, int status);

/* Ends what was listed for the hub before: nothing of it is sent any more. */
void init_process_reset(void);

/* Reads /proc/PID/stat; the name in *ret is good until the next call. False: there is no such
 * process. */
struct stat_line;
bool init_proc_stat(const char *pid, struct stat_line *ret);
