#pragma once
/*
 * The data folder belongs to one hub at a time. Its file "hub" says which: the hub holds a lock on
 * it (fcntl(2)) for as long as its process lives, so the kernel tells who that is, in the client's
 * own PID namespace, and never names a process that came later.
 *
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct claim {
	pid_t pid; /* 0: it has another PID namespace */
	bool yields; /* to one that starts and does not yield itself */
	int64_t since; /* Unix seconds; 0: not yet known */
	char socket[PATH_MAX]; /* "none", or "": not yet known */
};

/* 1 and *ret: a hub has the data folder; 0: none has. */
int claim_look(struct claim *ret, struct err *e) MUST_USE;

/* ERR_STORE_LOCKED: claim_take() would fail, since another hub has it and does not yield. Else as
 * claim_look(); *ret.pid 0: none has it. */
int claim_check(bool yields, struct claim *ret, struct err *e) MUST_USE;

/* Whether that hub listens on the port of address, "HOST:PORT". */
bool claim_listens(const struct claim *c, const char *address);

/* Takes it for this process, until that ends; its pid and time are filled in. A hub that yields is
 * told to (SIGUSR1) and waited for. ERR_STORE_LOCKED with claim_text() where another one has it. */
int claim_take(const struct claim *mine, struct err *e) MUST_USE;

/* By the hub that has it: a sandbox that it could not stop at its end. claim_left() tells each of
 * the last hub, until another one takes the folder, and returns how many there are. */
void claim_leave(struct str sandbox, const char *why);
int claim_left(void (*on_left)(const char *text), struct err *e) MUST_USE;

/* Sends it a signal. 1: sent, 0: there is none; ERR_UNSUPPORTED where its process can't be seen. */
int claim_signal(int number, struct err *e) MUST_USE;

/* "pid 123, socket /run/holt.sock, since 2026-01-31T12:00:00Z" */
enum { CLAIM_TEXT_MAX = 256, CLAIM_TIME_MAX = 32 };
void claim_text(const struct claim *c, char ret[CLAIM_TEXT_MAX]);
void claim_time(const struct claim *c, char ret[CLAIM_TIME_MAX]);
