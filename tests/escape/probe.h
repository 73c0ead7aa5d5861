#pragma once
/*
 * What a program in a sandbox might try, a row an attempt. The rows stand in the probe_*.c files by
 * what they attack; probe.c runs them. The harness runs each row twice: in a sandbox, where it must
 * fail unless its row says `policy`, and in its control, a weaker setting where it must work, so
 * that a denial means something.
 *
 * An attempt runs in a process of its own, so it may change itself as it likes. A row that would do
 * harm if it worked outside says so, and runs only where probe.c's guard sees a jail around it.
 *
 */
#include <stdbool.h>
#include <stddef.h>

enum result {
	OPEN, /* it worked */
	DENIED, /* found.errnum says how */
	ABSENT, /* what it wants is not there at all */
};

/* What an attempt tells beside its result. */
struct found {
	int errnum; /* 0: none */
	char detail[160]; /* for people; not compared */
};

/* The setting in which the attempt must work. */
enum control {
	PLAIN, /* an unprivileged user without any jail */
	JAIL, /* that user as root of new namespaces (unshare(1)), nothing else taken away */
	ROOT, /* root outside; only for what harms nothing */
	LOOK, /* root outside, which only looks whether it might */
};

struct attempt {
	const char *name;
	const char *what; /* for the table in docs/isolation.md */
	const char *by; /* what holds it, strongest first */
	enum result (*run)(struct found *f);
	enum control control;
	bool harm; /* only inside a jail */
	bool policy; /* open on purpose; `by` says why that is no way out */
	int capability; /* number + 1 of what root needs for ROOT, and LOOK looks at; 0: none */
	const char *path; /* LOOK: may it be written? */
	enum result (*look)(struct found *f);
};

struct attempts {
	const char *title; /* a section of the table */
	const struct attempt *rows;
	size_t n;
};

#define PROBE_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CAPABILITY(number) ((number) + 1)

extern const struct attempts kernel_attempts, machine_attempts, space_attempts, proc_attempts,
	process_attempts, privilege_attempts, file_attempts, net_attempts;

/* OPEN when ret is not negative, else DENIED with errno. */
enum result tried(struct found *f, long ret);

/* The same, but ABSENT where errno says that there is no such thing; an fd in ret is closed. */
enum result tried_open(struct found *f, int ret);

/* printf into f->detail. */
void tell(struct found *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the harness says in the environment; fallback where it says nothing. */
const char *told(const char *name, const char *fallback);

/* The process that an attempt on PID 1 is aimed at: 1, or the control's stand-in. */
int target_pid(void);

/* The whole of a small file as text, "" when it can't be read. buf[n] */
const char *slurp(const char *path, char *buf, size_t n);

/* Counts the files below dir that can_write() says yes to, not following links. */
int sweep(const char *dir, int depth, bool (*can_write)(const char *path), struct found *f);
bool opens_for_write(const char *path);
bool looks_writable(const char *path);

/* ---- resource bombs: probe_bomb.c ------------------------------------------------------------ */

/* Runs the named bomb until it is stopped or done; 2 when there is none of that name. */
int bomb(const char *name, const char *argument);
