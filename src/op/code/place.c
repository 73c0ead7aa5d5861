/* The sandboxes that code runs in, one for each principal and each set of profiles. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "op/code/internal.h"
#include "op/label.h"

enum { PROGRAM_MAX = 16 << 20 };

struct code_place {
	struct lazy_sandbox lazy; /* first: the two are cast */
	struct code_place *next;
	bool has_program; /* CODE_PROGRAM is there */
	bool writing; /* it is being written */
	struct buf program;
	struct code_workers workers;
	struct field_pair labels[2]; /* what the sandbox is for: this place alone has them all */
	char profiles_sum[SHA256_HEX];
};

struct code {
	struct code_place *places;
};

struct code *code_new(struct err *e)
{
	struct code *k = calloc(1, sizeof(*k));

	if (!k)
		err_set(e, ERR_LIMIT, "out of memory");
	return k;
}

void code_free(struct code *k)
{
	struct code_place *p = k ? k->places : NULL, *next;

	for (; p; p = next) {
		next = p->next;
		lazy_sandbox_fini(&p->lazy);
		buf_fini(&p->program);
		free(p);
	}
	free(k);
}

struct code_workers *place_workers(struct code_place *p)
{
	return &p->workers;
}

void place_forget_program(struct code_place *p)
{
	p->has_program = false;
}

static void place_made(struct code_place *p, const struct err *err)
{
	buf_fini(&p->program);
	lazy_sandbox_go(&p->lazy, err);
}

/* ---- the program --------------------------------------------------------------------------- */

static int program_read(const struct box *box, struct buf *to, struct err *e)
{
	char path[PATH_MAX];
	autoclose int fd = -1;
	struct stat st;
	ssize_t n = 1;

	if (box_program(box, "holt-js", path, sizeof(path), e) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, ERR_PROGRAM, "holt-js is not installed beside holt-warden");
	while (n > 0) {
		char *p = buf_reserve(to, 1 << 20, e);

		n = p ? read(fd, p, 1 << 20) : -1;
		if (n > 0)
			buf_advance(to, (size_t)n);
	}
	return n < 0 ? err_set(e, ERR_IO, "holt-js could not be read") : 0;
}

static void on_written(void *arg, const struct err *err)
{
	struct code_place *p = arg;

	p->writing = false;
	p->has_program = !err;
	place_made(p, err);
}

static void place_write(struct lazy_sandbox *lazy)
{
	static const struct file_write_opts opts = { .mode = 0755 };
	struct code_place *p = (struct code_place *)lazy;
	struct call *c = lazy->waiting->call;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = hub_sandboxes_find(call_sandboxes(c), str_of(lazy->id), &e);
	struct sandbox *sb = l ? hub_sandbox_sandbox(l, &e) : NULL;

	if (!sb || program_read(call_box(c), &p->program, &e) < 0) {
		place_made(p, &e);
		return;
	}
	p->writing = true;
	file_write_start(sb, STR_LIT(CODE_PROGRAM), buf_str(&p->program), &opts, on_written, p);
}

/* ---- the sandbox --------------------------------------------------------------------------- */

static struct code_place *place_of(struct code *k, const struct call *c, struct err *e)
{
	struct code_place *p = k->places;
	struct sandbox_needed *needed;
	struct lazy_sandbox wanted;

	lazy_sandbox_init(&wanted, c);
	while (p && !lazy_sandbox_same(&p->lazy, &wanted))
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	p->lazy = wanted;
	p->lazy.on_made = place_write;
	needed = &p->lazy.needed;
	*needed = (struct sandbox_needed){ .what = "that code runs in",
					   .cwd = STR_LIT("/tmp"),
					   .labels = { p->labels, 1 },
					   .idle_seconds = CODE_IDLE_S };
	p->labels[0] = (struct field_pair){ STR_LIT("code"), STR_LIT("javascript") };
	if (*p->lazy.profiles) {
		sha256_hex(str_of(p->lazy.profiles), p->profiles_sum);
		p->labels[needed->labels.n++] = (struct field_pair){ STR_LIT("code.profiles"),
								     str_of(p->profiles_sum) };
	}
	p->program = BUF_INIT(PROGRAM_MAX);
	p->next = k->places;
	k->places = p;
	return p;
}

/* Takes the sandbox that a hub before had for this place, so that none is left when hubs are killed
 * one after another. */
static void place_adopt(struct code_place *p, struct call *c)
{
	enum { PAGE = 64 };
	struct lazy_sandbox *lazy = &p->lazy;
	struct hub_sandbox_info i = { .seq = 0 };
	struct hub_sandbox *page[PAGE];
	struct str text;
	struct err none;
	size_t got = PAGE;

	if (labels_text(&lazy->needed.labels, call_arena(c), &text, &none) < 0)
		return;
	while (got == PAGE && !lazy->id[0]) {
		got = hub_sandboxes_list(call_sandboxes(c), i.seq, page, PAGE);
		for (size_t k = 0; k < got && !lazy->id[0]; k++) {
			hub_sandbox_info(page[k], &i);
			if (i.adopted && i.state == SANDBOX_RUNNING && !i.volumes &&
			    i.idle_ms == CODE_IDLE_S * 1000 && str_is(i.owner, lazy->owner) &&
			    str_eq(i.labels, text))
				snprintf(lazy->id, sizeof(lazy->id), "%.*s", STR_ARG(i.id));
		}
	}
	p->has_program = false;
}

static void place_go(void *data, const struct err *err)
{
	struct code_guest *g = data;
	struct err e;

	/* The call keeps the id, and may outlive g. */
	if (!err) {
		const char *id = arena_dup(call_arena(g->wait.call), str_of(g->wait.id), &e);

		g->sandbox = id ? call_sandbox(g->wait.call, str_of(id), &e) : NULL;
		err = g->sandbox ? NULL : &e;
	}
	g->then(g, err);
}

void place_enter(struct code *k, struct code_guest *g)
{
	struct err e = ERR_INIT;
	struct call *c = g->wait.call;
	struct code_place *p = place_of(k, c, &e);
	struct lazy_sandbox *lazy;

	if (!p) {
		g->then(g, &e);
		return;
	}
	lazy = &p->lazy;
	g->place = p;
	g->wait.then = place_go;
	g->wait.data = g;
	if (!lazy->id[0])
		place_adopt(p, c);
	if (p->writing) {
		lazy_sandbox_wait(lazy, &g->wait);
	} else if (lazy->making || !lazy_sandbox_is_there(lazy, c)) {
		p->has_program = false;
		if (lazy_sandbox_make(lazy, &g->wait, &e) < 0)
			g->then(g, &e);
	} else if (p->has_program) {
		memcpy(g->wait.id, lazy->id, sizeof(g->wait.id));
		place_go(g, NULL);
	} else {
		lazy_sandbox_wait(lazy, &g->wait);
		place_write(lazy);
	}
}
