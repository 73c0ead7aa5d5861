#include "hub/core/hub.h"

#include <stdlib.h>

#include "base/log.h"
#include "hub/image/images.h"
#include "hub/net/net.h"
#include "hub/sandbox/job.h"
#include "hub/core/preview.h"
#include "hub/sandbox/snapshots.h"
#include "hub/workspace/workspaces.h"
#include "store/store.h"

struct hub {
	uv_loop_t *loop;
	struct box *box;
	struct store *store; /* NULL: none */
	struct hub_sandboxes *sandboxes;
	struct workspaces *workspaces; /* owned, NULL: none are kept */
	struct nets *nets;
	struct previews *previews; /* owned, NULL: there are none */
	char *images; /* path of their store; NULL: none */

	bool closing;
	void (*on_left)(void *arg, struct str sandbox, const struct err *why);
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

static void hub_free(struct hub *hub)
{
	if (!hub)
		return;
	store_close(hub->store);
	previews_free(hub->previews);
	free(hub->images);
	free(hub);
}
AUTO_DEFINE(hub_free, struct hub)

struct found {
	struct sandbox **sandboxes;
	size_t n;
};

static void hub_find(void *arg, struct sandbox *sb)
{
	struct found *f = arg;

	f->sandboxes[f->n++] = sb;
}

/* Takes over the sandboxes that the engine has kept from an earlier hub. */
static int hub_adopt(struct hub *hub, struct err *e)
{
	struct found f = { .n = 0 };
	struct box_stats stats;

	box_stats(hub->box, &stats);
	f.sandboxes = calloc(stats.live + 1u, sizeof(*f.sandboxes));
	if (!f.sandboxes)
		return err_set(e, ERR_LIMIT, "out of memory");
	box_each(hub->box, hub_find, &f);
	hub_sandboxes_adopt(hub->sandboxes, hub->box, f.sandboxes, f.n);
	free(f.sandboxes);
	return 0;
}

/* Open the registry first: without its lock the hub does not start. */
static int hub_start(struct hub *hub, const struct hub_config *config, struct err *e)
{
	struct box_config box = config->box;
	struct nets_options net = config->net;

	if (config->registry) {
		hub->store = store_open(config->registry, e);
		if (!hub->store)
			return -1;
	}
	hub->sandboxes = hub_sandboxes_new(hub->loop, hub->store, e);
	if (!hub->sandboxes ||
	    (config->outputs && hub_sandboxes_set_folder(hub->sandboxes, config->outputs, e) < 0))
		return -1;
	if (hub->store && config->snapshots &&
	    hub_sandboxes_keep_snapshots(hub->sandboxes, config->snapshots, e) < 0)
		return -1;
	if (hub->store && config->workspaces) {
		hub->workspaces = workspaces_new(hub->loop, hub->store, hub->sandboxes,
						 config->workspaces, e);
		if (!hub->workspaces || workspaces_share(hub->workspaces, config->shots, e) < 0)
			return -1;
	}
	if (config->n_volumes &&
	    hub_sandboxes_allow_volumes(hub->sandboxes, config->volumes, config->n_volumes, e) < 0)
		return -1;
	box.on_end = hub_sandboxes_on_end;
	box.on_end_arg = hub->sandboxes;
	box.ttl_by_caller = true;
	box.root = true;
	if (hub->images) {
		box.find_template = images_template;
		box.find_arg = hub->images;
	}
	hub->box = box_new(hub->loop, &box, e);
	if (!hub->box)
		return -1;
	net.on_flow = hub_sandboxes_on_flow;
	net.on_ask = hub_sandboxes_on_ask;
	net.on_leave = hub_sandboxes_on_leave;
	net.on_tokens = hub_sandboxes_on_tokens;
	net.owner = hub->sandboxes;
	hub->nets = nets_new(hub->loop, hub->box, &net, e);
	if (!hub->nets)
		return -1;
	hub_sandboxes_serve_networks(hub->sandboxes, hub->nets);
	return hub_adopt(hub, e);
}

struct hub *hub_new(uv_loop_t *loop, const struct hub_config *config, struct err *e)
{
	AUTO(hub_free) struct hub *hub = calloc(1, sizeof(*hub));

	if (!hub)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	hub->loop = loop;
	if (config->images && !(hub->images = strdup(config->images)))
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	if (hub_start(hub, config, e) == 0)
		return take_ptr(hub);
	hub_sandboxes_free(hub->sandboxes);
	workspaces_free(hub->workspaces);
	return NULL;
}

static void on_nets_closed(void *arg)
{
	struct hub *hub = arg;
	void (*on_closed)(void *) = hub->on_closed;
	void *on_closed_arg = hub->on_closed_arg;

	workspaces_free(hub->workspaces);
	hub_free(hub);
	on_closed(on_closed_arg);
}

static void on_sandboxes_closed(void *arg)
{
	struct hub *hub = arg;

	hub->sandboxes = NULL;
	nets_close(hub->nets, on_nets_closed, hub);
}

static void on_box_closed(void *arg)
{
	struct hub *hub = arg;

	hub_sandboxes_close(hub->sandboxes, on_sandboxes_closed, hub);
}

static void begin_close(struct hub *hub, void (*on_closed)(void *arg), void *arg)
{
	struct box_stats s;

	hub->closing = true;
	hub->on_closed = on_closed;
	hub->on_closed_arg = arg;
	/* Pool hits and misses, shown with HOLT_LOG=info. */
	box_stats(hub->box, &s);
	log_info("%llu sandboxes created, %llu of them from the pool of %u; %llu forked, %llu lost",
		 (unsigned long long)s.created, (unsigned long long)s.pool_hits, s.pool_size,
		 (unsigned long long)s.forked, (unsigned long long)s.lost);
}

static void end_sandboxes(void *arg)
{
	struct hub *hub = arg;

	hub_sandboxes_stop(hub->sandboxes);
	box_close(hub->box, on_box_closed, hub);
}

static void leave_sandboxes(void *arg)
{
	struct hub *hub = arg;

	hub_sandboxes_leave(hub->sandboxes);
	box_leave(hub->box, on_box_closed, hub);
}

static void keep_on_left(void *arg, struct str sandbox, const struct err *why)
{
	struct hub *hub = arg;

	hub->on_left(hub->on_closed_arg, sandbox, why);
}

static void on_kept(void *arg, size_t failed)
{
	if (failed)
		leave_sandboxes(arg);
	else
		end_sandboxes(arg);
}

static void keep_sandboxes(void *arg)
{
	struct hub *hub = arg;

	hub_sandboxes_keep_start(hub->sandboxes, &(struct hub_keeping){ keep_on_left, on_kept },
				 hub);
}

void hub_keep(struct hub *hub,
	      void (*on_left)(void *arg, struct str sandbox, const struct err *why),
	      void (*on_closed)(void *arg), void *arg)
{
	hub->on_left = on_left;
	begin_close(hub, on_closed, arg);
	if (hub->workspaces)
		workspaces_stop(hub->workspaces, false, keep_sandboxes, hub);
	else
		keep_sandboxes(hub);
}

void hub_close(struct hub *hub, void (*on_closed)(void *arg), void *arg)
{
	begin_close(hub, on_closed, arg);
	if (hub->workspaces)
		workspaces_stop(hub->workspaces, false, end_sandboxes, hub);
	else
		end_sandboxes(hub);
}

void hub_leave(struct hub *hub, void (*on_closed)(void *arg), void *arg)
{
	begin_close(hub, on_closed, arg);
	if (hub->workspaces)
		workspaces_stop(hub->workspaces, true, leave_sandboxes, hub);
	else
		leave_sandboxes(hub);
}

int hub_show_previews(struct hub *hub, const struct preview_site *site, struct err *e)
{
	previews_free(hub->previews);
	hub->previews = previews_new(site, e);
	return hub->previews ? 0 : -1;
}

const struct previews *hub_previews(const struct hub *hub)
{
	return hub->previews;
}

struct box *hub_box(struct hub *hub)
{
	return hub->box;
}

struct hub_sandboxes *hub_sandboxes(struct hub *hub)
{
	return hub->sandboxes;
}

const char *hub_images(const struct hub *hub)
{
	return hub->images;
}

struct workspaces *hub_workspaces(struct hub *hub)
{
	return hub->workspaces;
}

struct nets *hub_nets(struct hub *hub)
{
	return hub->nets;
}

struct store *hub_store(struct hub *hub)
{
	return hub->store;
}

int hub_check(struct hub *hub, struct err *e)
{
	return hub->store ? store_check(hub->store, e) : 0;
}

bool hub_closing(const struct hub *hub)
{
	return hub->closing;
}

uv_loop_t *hub_loop(struct hub *hub)
{
	return hub->loop;
}
