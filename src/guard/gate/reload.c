/*
 * The operator's file is read again when it changes. Its folder is watched, since editors and
 * configuration managers replace files; where it is behind a link, so is the folder that it leads
 * to. A file that is gone or has a mistake changes nothing but what the hub says of itself.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "guard/gate/internal.h"

enum { SETTLE_MS = 20, AGAIN_MS = 1000, WATCHES = 2 };

struct gate_reload {
	struct gate *gate; /* NULL: it is closing */
	uv_fs_event_t watches[WATCHES];
	uv_timer_t timer;
	unsigned open; /* handles */
	bool above; /* the file's own folder is not there yet */
	bool is_bad;
	uint64_t reads;
	struct err why;
};

static void reload_watch(struct gate_reload *r);

/* The folder of a path; for one that is not there, the nearest above it that is. Gives how many
 * steps that was. */
static int reload_folder(char path[PATH_MAX])
{
	char *slash;
	int steps = 0;

	do {
		steps++;
		slash = strrchr(path, '/');
		if (!slash)
			strcpy(path, ".");
		else if (slash == path)
			path[1] = '\0';
		else
			*slash = '\0';
	} while (slash && slash != path && access(path, F_OK) < 0);
	return steps;
}

static void on_reload_timer(uv_timer_t *t);

static void reload_read(struct gate_reload *r)
{
	struct err e = ERR_INIT;
	AUTO(config_unref)
	struct config *c = config_open(config_path(r->gate->config), config_exists(r->gate->config),
				       &e);

	r->reads++;
	if (!c || gate_check_config(c, &e) < 0) {
		/* A mistake is there until the file changes. All else may pass, and what the
		 * file forbids must not be allowed for longer than that. */
		if (!r->is_bad || strcmp(r->why.msg, e.msg) != 0)
			log_warn("the configuration stays as it was: %s", e.msg);
		r->is_bad = true;
		r->why = e;
		if (e.code != ERR_INVALID)
			uv_timer_start(&r->timer, on_reload_timer, AGAIN_MS, 0);
	} else if (config_exists(c)) {
		r->is_bad = false;
		gate_set_config(r->gate, c);
		log_info("the configuration was read again");
	}
}

static void on_reload_timer(uv_timer_t *t)
{
	struct gate_reload *r = t->data;

	if (!r->gate)
		return;
	reload_watch(r); /* first, so that no change is missed */
	reload_read(r);
}

static void on_reload_event(uv_fs_event_t *w, const char *name, int events, int status)
{
	struct gate_reload *r = w->data;
	const char *path = r->gate ? config_path(r->gate->config) : NULL;
	const char *base = path ? strrchr(path, '/') : NULL;

	/* The data folder, in which the file may be, changes all the time. */
	if (path &&
	    (!name || r->above || w != &r->watches[0] || strcmp(name, base ? base + 1 : path) == 0))
		uv_timer_start(&r->timer, on_reload_timer, SETTLE_MS, 0);
}

static void reload_start(uv_fs_event_t *w, const char *folder)
{
	int rc;

	uv_fs_event_stop(w);
	rc = uv_fs_event_start(w, on_reload_event, folder, 0);
	if (rc < 0)
		log_warn("changes of the configuration are not seen: %s", uv_strerror(rc));
	if (rc < 0)
		uv_timer_start(&((struct gate_reload *)w->data)->timer, on_reload_timer, AGAIN_MS,
			       0);
}

static void reload_watch(struct gate_reload *r)
{
	char folder[PATH_MAX], real[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s", config_path(r->gate->config));
	if (realpath(folder, real))
		reload_folder(real);
	else
		real[0] = '\0';
	r->above = reload_folder(folder) > 1;
	reload_start(&r->watches[0], folder);
	if (real[0] && strcmp(real, folder) != 0)
		reload_start(&r->watches[1], real);
	else
		uv_fs_event_stop(&r->watches[1]);
}

int gate_reload_open(struct gate *g, struct err *e)
{
	struct gate_reload *r;

	if (!g->loop || !config_path(g->config))
		return 0;
	r = g->reload = calloc(1, sizeof(*r));
	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory");
	r->gate = g;
	r->open = WATCHES + 1;
	uv_timer_init(g->loop, &r->timer);
	uv_unref((uv_handle_t *)&r->timer);
	r->timer.data = r;
	for (size_t i = 0; i < WATCHES; i++) {
		uv_fs_event_init(g->loop, &r->watches[i]);
		uv_unref((uv_handle_t *)&r->watches[i]);
		r->watches[i].data = r;
	}
	reload_watch(r);
	return 0;
}

static void on_reload_closed(uv_handle_t *h)
{
	struct gate_reload *r = h->data;

	if (--r->open == 0)
		free(r);
}

void gate_reload_close(struct gate *g)
{
	struct gate_reload *r = take_ptr(g->reload);

	if (!r)
		return;
	r->gate = NULL;
	uv_close((uv_handle_t *)&r->timer, on_reload_closed);
	for (size_t i = 0; i < WATCHES; i++)
		uv_close((uv_handle_t *)&r->watches[i], on_reload_closed);
}

void gate_stats(const struct gate *g, struct gate_stats *ret)
{
	*ret = (struct gate_stats){ g->reload ? g->reload->reads : 0, gate_problem(g) != NULL };
}

const struct err *gate_problem(const struct gate *g)
{
	return g->reload && g->reload->is_bad ? &g->reload->why : NULL;
}
