#pragma once
/*
 * The sandbox of tools that are told none: that of a workspace, of a session, or of code. The first
 * call that needs it makes it, as a sandbox.create of the same principal with its policy, approval,
 * limits and audit. Calls that come meanwhile wait for it.
 */
#include "base/id.h"
#include "call/profile.h"
#include "hub/sandbox/sandbox.h"
#include "op/sandbox_make.h"

/* A call that waits; its cancellation is seen here meanwhile. */
struct lazy_wait {
	struct call *call;
	/* err: there is no sandbox, or the call was cancelled. */
	void (*then)(void *data, const struct err *err);
	void *data;
	char id[ID_MAX]; /* of the sandbox, for then() without err */
	struct lazy_wait *next; /* private */
};

struct lazy_sandbox {
	char owner[OWNER_MAX + 1], profiles[PROFILE_TEXT_MAX + 1];
	char id[ID_MAX]; /* "": there is none */
	struct sandbox_needed needed; /* of the next that is made; the id is ours */
	/* It was made; lazy_sandbox_go() is to follow. NULL: the calls go on at once. */
	void (*on_made)(struct lazy_sandbox *s);
	/* Before the calls go on; it may free s. May be NULL. */
	void (*on_go)(struct lazy_sandbox *s);
	/* Private, but to be read. */
	struct call *making;
	struct lazy_wait *waiting;
	struct arena *arena; /* of the call that makes it, or did */
};

/* For the principal and the profiles of a call. */
void lazy_sandbox_init(struct lazy_sandbox *s, const struct call *c);
void lazy_sandbox_fini(struct lazy_sandbox *s);
/* Whether both are for the same principal and profiles. */
bool lazy_sandbox_same(const struct lazy_sandbox *a, const struct lazy_sandbox *b);

/* Whether there is one that can be used or will be, such as a paused one. */
bool lazy_sandbox_is_there(const struct lazy_sandbox *s, struct call *c);

/* Waits for the one that is being made, and where none is, makes it. -1: nothing follows. */
int lazy_sandbox_make(struct lazy_sandbox *s, struct lazy_wait *w, struct err *e) MUST_USE;
/* Waits for lazy_sandbox_go(). */
void lazy_sandbox_wait(struct lazy_sandbox *s, struct lazy_wait *w);
/* All that wait go on. */
void lazy_sandbox_go(struct lazy_sandbox *s, const struct err *err);
