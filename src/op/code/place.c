/* The sandboxes that code runs in, one for each principal and each set of profiles. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "base/sha256.h"
#include "call/profile.h"
#include "op/code/internal.h"
#include "op/label.h"
#include "op/sandbox_make.h"

enum { PROGRAM_MAX = 16 << 20 };

struct code_place {
	struct code_place *next;
	struct code *all;
	char owner[OWNER_MAX + 1], profiles[PROFILE_TEXT_MAX + 1];
	char id[ID_MAX]; /* of its sandbox; "": there is none */
	bool has_program; /* CODE_PROGRAM is there */
	struct code_workers workers;
	/* While it is made. */
	struct call *making; /* the sandbox */
	bool writing; /* CODE_PROGRAM */
	struct arena *arena; /* of the call that makes it, or did */
	struct buf program;
	struct code_guest *waiting;
	struct field_pair labels[2]; /* what the sandbox is for: this place alone has them all */
	size_t n_labels;
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
		arena_free(p->arena);
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

static struct code_place *place_of(struct code *k, const struct call *c, struct err *e)
{
	struct str owner = call_owner(c);
	char profiles[PROFILE_TEXT_MAX + 1];
	struct code_place *p = k->places;

	profile_text(c, profiles);
	while (p && (!str_is(owner, p->owner) || strcmp(p->profiles, profiles) != 0))
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	snprintf(p->owner, sizeof(p->owner), "%.*s", STR_ARG(owner));
	memcpy(p->profiles, profiles, sizeof(p->profiles));
	p->labels[p->n_labels++] = (struct field_pair){ STR_LIT("code"), STR_LIT("javascript") };
	if (*profiles) {
		sha256_hex(str_of(profiles), p->profiles_sum);
		p->labels[p->n_labels++] = (struct field_pair){ STR_LIT("code.profiles"),
								str_of(p->profiles_sum) };
	}
	p->all = k;
	p->program = BUF_INIT(PROGRAM_MAX);
	p->next = k->places;
	k->places = p;
	return p;
}

/* Goes on with all that wait. */
static void place_made(struct code_place *p, const struct err *err)
{
	struct code_guest *g = take_ptr(p->waiting), *next;

	buf_fini(&p->program);
	for (; g; g = next) {
		struct err e = ERR_INIT;

		next = g->next;
		call_on_cancel(g->call, NULL, NULL);
		if (err)
			e = *err;
		else if (call_cancelled(g->call))
			err_set(&e, ERR_CANCELLED, "the call was cancelled");
		else
			g->sandbox = call_sandbox(g->call, str_of(p->id), &e);
		g->then(g, g->sandbox ? NULL : &e);
	}
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

static void place_write(struct code_place *p, struct call *c)
{
	static const struct file_write_opts opts = { .mode = 0755 };
	struct err e = ERR_INIT;
	struct hub_sandbox *l = hub_sandboxes_find(call_sandboxes(c), str_of(p->id), &e);
	struct sandbox *sb = l ? hub_sandbox_sandbox(l, &e) : NULL;

	if (!sb || program_read(call_box(c), &p->program, &e) < 0) {
		place_made(p, &e);
		return;
	}
	p->writing = true;
	file_write_start(sb, STR_LIT(CODE_PROGRAM), buf_str(&p->program), &opts, on_written, p);
}

/* ---- the sandbox --------------------------------------------------------------------------- */

static int place_decode(void *client, void *request, struct err *e)
{
	struct code_place *p = client;

	sandbox_need(&(struct sandbox_needed){ .id = str_of(p->id),
					       .cwd = STR_LIT("/tmp"),
					       .labels = { p->labels, p->n_labels },
					       .idle_seconds = CODE_IDLE_S },
		     request);
	return 0;
}

static void place_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct code_place *p = client;

	p->making = NULL;
	place_write(p, p->waiting->call);
}

static void place_on_fail(void *client, const struct err *err)
{
	struct code_place *p = client;
	struct err e = *err;

	p->making = NULL;
	p->id[0] = '\0';
	err_wrap(&e, "make the sandbox that code runs in");
	place_made(p, &e);
}

static const struct op_sink place_sink = { .answer = place_on_answer, .fail = place_on_fail };

/* The sandbox is not made any more once nobody waits for it. They all wait for its end, so that the
 * hub does not end before. */
static void place_on_cancel(void *data)
{
	struct code_place *p = data;

	for (const struct code_guest *g = p->waiting; g; g = g->next) {
		if (!call_cancelled(g->call))
			return;
	}
	if (p->making)
		call_cancel(p->making);
}

static int place_make(struct code_place *p, struct call *c, struct err *e)
{
	enum { ARENA_MAX = 1 << 20 };
	struct op_start start = {
		.op = &sandbox_create_op, .decode = place_decode, .sink = &place_sink, .client = p
	};

	arena_free(p->arena);
	p->arena = start.arena = arena_new(ARENA_MAX);
	if (!p->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	p->has_program = false;
	id_make(p->id, "sbx");
	if (profile_from_text(p->profiles, p->arena, &start.profiles, e) == 0)
		p->making = call_inner(c, &start, e);
	if (p->making)
		return 0;
	p->id[0] = '\0';
	return -1;
}

/* Whether it has a sandbox that can be used or will be, such as a paused one. */
static bool place_is_there(const struct code_place *p, struct call *c)
{
	struct hub_sandbox_info i;
	struct hub_sandbox *l;
	struct err none;

	l = p->id[0] ? hub_sandboxes_find(call_sandboxes(c), str_of(p->id), &none) : NULL;
	if (!l)
		return false;
	hub_sandbox_info(l, &i);
	return i.state != SANDBOX_LOST && i.state != SANDBOX_TERMINATED &&
	       i.state != SANDBOX_FAILED;
}

/* Takes the sandbox that a hub before had for this place, so that none is left when hubs are killed
 * one after another. */
static void place_adopt(struct code_place *p, struct call *c)
{
	enum { PAGE = 64 };
	const struct field_map labels = { p->labels, p->n_labels };
	struct hub_sandbox_info i = { .seq = 0 };
	struct hub_sandbox *page[PAGE];
	struct str text;
	struct err none;
	size_t got = PAGE;

	if (labels_text(&labels, call_arena(c), &text, &none) < 0)
		return;
	while (got == PAGE && !p->id[0]) {
		got = hub_sandboxes_list(call_sandboxes(c), i.seq, page, PAGE);
		for (size_t k = 0; k < got && !p->id[0]; k++) {
			hub_sandbox_info(page[k], &i);
			if (i.adopted && i.state == SANDBOX_RUNNING && !i.volumes &&
			    i.idle_ms == CODE_IDLE_S * 1000 && str_eq(i.owner, str_of(p->owner)) &&
			    str_eq(i.labels, text))
				snprintf(p->id, sizeof(p->id), "%.*s", STR_ARG(i.id));
		}
	}
	p->has_program = false;
}

void place_enter(struct code *k, struct code_guest *g)
{
	struct err e = ERR_INIT;
	struct code_place *p = place_of(k, g->call, &e);
	bool there, makes;

	g->place = p;
	if (!p) {
		g->then(g, &e);
		return;
	}
	if (!p->id[0])
		place_adopt(p, g->call);
	makes = p->making || p->writing;
	there = makes || place_is_there(p, g->call);
	if (there && !makes && p->has_program) {
		g->sandbox = call_sandbox(g->call, str_of(p->id), &e);
		g->then(g, g->sandbox ? NULL : &e);
		return;
	}
	if (!there && place_make(p, g->call, &e) < 0) {
		g->then(g, &e);
		return;
	}
	g->next = p->waiting;
	p->waiting = g;
	call_on_cancel(g->call, place_on_cancel, p);
	if (!there)
		op_start(p->making);
	else if (!makes)
		place_write(p, g->call);
}
