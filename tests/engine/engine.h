#pragma once
/*
 * The real engine under a test: a box with its warden and sandboxes, driven through box.h, with
 * calls that wait where box.h calls back. Everything a helper returns belongs to the fixture and
 * lives until engine_stop(), so a test that fails half-way leaves nothing behind.
 *
 * A helper that gets something unexpected fails the test; what a test wants to see fail has a
 * form that returns the error.
 */
#include <sys/types.h>

#include "../unit/test.h"
#include "base/buf.h"
#include "box/host/box.h"

/* Runs the tests; as root, also once more as an unprivileged user with a copy of the two
 * programs. argv[1] is the directory where these are; with "v1" behind it they run once, as
 * root, on v1 control groups alone, and 77 is the exit status where there are none; with "once"
 * as whoever runs them only. The exit status of main(). */
int engine_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n);

#define ENGINE_MAIN(argc, argv, name, tests)                                                       \
	engine_main(argc, argv, name, tests, sizeof(tests) / sizeof((tests)[0]))

/* A test that finds a running engine, without a pool, and is failed when anything is left of it
 * afterwards: a process, a mount, a control group, a descriptor of ours. */
#define engine_test(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)
int engine_setup(void **state);
int engine_teardown(void **state);

/* For tests that want another configuration; libexec_dir is filled in. engine_teardown() ends
 * it. */
void engine_start(const struct box_config *config);
void engine_stop(void);
/* Goes as if killed, where sandboxes outlive that; what was returned before is gone. */
void engine_leave(void);

extern struct box *box;
uv_loop_t *engine_loop(void);
bool rootless(void);
bool limits_by(const char *driver); /* as box_stats says it */
const char *libexec_dir(void);

/* Runs the loop until *done, at most 30 s, then fails the test saying what did not come. */
void wait_for(const bool *done, const char *what);
/* Runs the loop for that long. */
void wait_ms(unsigned ms);

/* How often what is repeated many times is: a tenth, or all with HOLT_SOAK=full (tests/soak.py), or
 * a few times with HOLT_SOAK=once, where the processor is not a real one. */
unsigned soak(unsigned full);

/* ---- sandboxes ------------------------------------------------------------------------------- */

struct made {
	bool done;
	struct sandbox *sb;
	struct err err;
};
struct made *make_start(const struct sandbox_spec *spec);
struct sandbox *make(const struct sandbox_spec *spec); /* NULL: a plain one */
struct err make_error(const struct sandbox_spec *spec);
struct made *destroy_start(struct sandbox *sb);
void destroy(struct sandbox *sb);

struct forked {
	bool done;
	size_t n;
	struct sandbox *children[64];
	struct err err;
};
struct forked *fork_start(struct sandbox *source, uint32_t n);
struct forked *fork_of(struct sandbox *source, uint32_t n);
/* The same, again and again for 30 s while it fails in this way. */
struct forked *fork_despite(struct sandbox *source, uint32_t n, enum err_code passing);
struct forked *fork_named(struct sandbox *source, uint32_t n, const struct str *ids); /* may fail */

/* ---- programs -------------------------------------------------------------------------------- */

struct ran {
	bool done;
	struct exec *x; /* while it runs */
	struct sandbox *sb;
	struct exec_result result;
	struct err err; /* code 0: it ran */
	struct buf out, errs; /* stdout, stderr */
	size_t drained; /* calls of on_drain */
	void (*on_output)(struct ran *r); /* may be NULL */
	void (*on_drain)(struct ran *r);
};

#define EXEC_MS 240000 /* the timeout that the short forms give */

struct ran *ran_start(struct sandbox *sb, const struct exec_spec *spec);
struct ran *ran_argv_start(struct sandbox *sb, const char *const *argv); /* ends in NULL */
struct ran *ran_argv(struct sandbox *sb, const char *const *argv); /* and waits */
struct ran *ran_shell(struct sandbox *sb, const char *line);
void ran_wait(struct ran *r);
struct ran *ran_until(struct sandbox *sb, const struct exec_spec *spec); /* start and wait */

/* A shell line: a program of the background that has begun when the line ends. */
#define SLEEPS "sleep 1000 >/dev/null 2>&1 & until grep -qx sleep /proc/$!/comm; do :; done"
/* Runs a shell line that must exit with 0; its stdout without the last newline. */
const char *sh(struct sandbox *sb, const char *line);
/* Runs a shell line; its exit code. */
int sh_code(struct sandbox *sb, const char *line);
/* The same for a program: Python in the template, since it reaches what a shell can't. */
bool has_python(struct sandbox *sb);

/* ---- files ----------------------------------------------------------------------------------- */

struct filed {
	bool done;
	struct err err;
	struct buf bytes;
	struct file_stat st;
	size_t n;
	bool truncated;
	char (*names)[256];
	struct file_stat *stats;
};

struct filed *put_start(struct sandbox *sb, const char *path, struct str bytes,
			const struct file_write_opts *opts);
struct filed *get_start(struct sandbox *sb, const char *path, uint64_t offset, size_t max);
struct filed *stat_start(struct sandbox *sb, const char *path);
struct filed *list_start(struct sandbox *sb, const char *path);
struct filed *mkdir_start(struct sandbox *sb, const char *path, bool parents);
struct filed *remove_start(struct sandbox *sb, const char *path, bool recursive);
struct filed *move_start(struct sandbox *sb, const char *from, const char *to);

/* Waits; gives its argument back. */
struct filed *filed(struct filed *f);
/* Waits; the code of its error, 0 for none. */
enum err_code filed_code(struct filed *f);

/* The two that are wanted everywhere; both must work. */
void put(struct sandbox *sb, const char *path, const char *text);
const char *get(struct sandbox *sb, const char *path);

/* n bytes that tell where they are from, kept by the fixture. */
struct str pattern(size_t n);

/* What a live one uses. */
struct usage usage_of(struct sandbox *sb);

/* ---- the host -------------------------------------------------------------------------------- */

pid_t warden_pid(void);
pid_t warden_if_any(void); /* 0: none at the moment */
/* The children of a process by the name of their program, at most max; returns how many. It looks
 * through all of /proc. */
size_t children_of(pid_t parent, const char *name, pid_t *out, size_t max);
/* The first processes of sandboxes, in no order. */
size_t init_pids(pid_t *ret_pids, size_t max);
/* Descriptors of a process; 0 where that can't be seen. */
size_t fds_of(pid_t pid);
/* It comes to have no more than n: when those were counted it may have had one open for a
 * moment. */
void assert_fds(pid_t pid, size_t n);
/* A new directory on the host for one test, mode 0755; removed with what is in it afterwards. */
const char *host_dir(void);
void host_file(const char *path, const char *text, mode_t mode);
