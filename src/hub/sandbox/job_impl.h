#pragma once
/*
 * Between the files of jobs:
 *
 *	job.c		one: from its start to its end, and what it prints
 *	job_row.c	one as a row of the registry, and back
 *	jobs.c		all of a hub: which are remembered, and for how long
 *	job_wait.c	who waits for what one prints; hub/spool/match.c for a pattern
 */
#include "base/id.h"
#include "hub/sandbox/job.h"

struct job_wait;

struct job {
	unsigned refs; /* of who found it; of the list it is in; of its exec */
	struct lives *all;
	struct life *life; /* while it runs or is listed; NULL else */
	bool listed; /* its life finds it */
	struct job *older; /* of its life */
	bool queued; /* among all that have ended: */
	struct job *ended_before, *ended_after;
	char id[SANDBOX_ID_MAX + 1], sandbox[SANDBOX_ID_MAX + 1];
	char command[JOB_COMMAND_MAX + 1];
	enum job_state state;
	bool background, terminal;
	bool stored; /* a row of it is in the registry, */
	uint64_t row_of; /* with this seq of its sandbox */
	struct exec *exec; /* NULL: it has ended */
	const struct exec_events *also; /* the foreground's; may be NULL */
	void *also_arg;
	struct spool *output;
	int64_t started_ms, ended_ms;
	uint64_t ended_at; /* clock_ms() */
	struct exec_result result;
	struct err why;
};

/* Those that have ended, the first to end first. */
struct job_queue {
	struct job *first, *last;
	size_t n;
};

/* A life's. */
struct jobs_of {
	struct job *newest;
	unsigned running; /* in the background */
	unsigned ended[2]; /* in the foreground, in the background */
};

/* All of a hub. */
struct jobs {
	struct lives *lives;
	char *folder;
	struct spool_house house;
	unsigned running; /* in the background */
	struct job_queue ended[2];
	uv_timer_t *timer; /* lets the oldest go */
	struct job_wait *looks; /* that stand in line for a thread (job_wait.c), */
	bool looking; /* and whether it is at work */
};

/* ---- job.c --------------------------------------------------------------------------------- */

/* One without an exec. NULL without memory. */
struct job *job_new(struct life *l, struct str id, struct str command, bool background,
		    uint64_t keep, struct err *e) MUST_USE;

/* ---- job_row.c ----------------------------------------------------------------------------- */

int job_save(struct job *j, struct err *e) MUST_USE;
/* A failure is logged. */
void job_drop_row(struct job *j);
/* Those of the registry: what ran in an earlier hub is lost. */
int jobs_load(struct lives *all, struct err *e) MUST_USE;
/* The registry says so, too. */
void jobs_settle(struct lives *all);

/* ---- jobs.c -------------------------------------------------------------------------------- */

int jobs_init(struct lives *all, uv_loop_t *loop, struct err *e) MUST_USE;
/* No exec runs any more. */
void jobs_fini(struct lives *all);

/* Into the list of its life, which takes over a reference. */
void jobs_list(struct job *j);
/* It has ended, and is remembered for a while, */
void jobs_remember(struct job *j);
/* as far as there is room: of this life and of all the first go that are over a bound. */
void jobs_trim(struct life *l);
/* All of a life, which has ended; those that run hear of that. */
void jobs_forget_of(struct life *l);
