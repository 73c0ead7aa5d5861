#include "cli/serve/engine.h"

#include <stdio.h>
#include <unistd.h>

#include "call/guard.h"
#include "guard/gate/gate.h"
#include "hub/sandbox/volumes.h"
#include "op/network.h"

enum { NETWORKS_READY = 4 };

struct limits engine_limits(const struct engine_options *o)
{
	return (struct limits){
		.memory = o->memory,
		.disk = o->disk,
		.pids = o->pids,
		.cpu_milli = o->cpu_milli,
		.files = o->files,
	};
}

void engine_close_own(struct engine_closed *c, const char *config)
{
	struct err unknown;
	bool must;

	c->n = home_folders(c->folders);
	for (size_t i = 0; i < c->n; i++)
		c->paths[i] = c->folders[i];
	if (home_config(config, c->config, &must, &unknown) < 0)
		return;
	if (c->config[0] == '/')
		c->paths[c->n++] = c->config;
	if (realpath(c->config, c->real))
		c->paths[c->n++] = c->real;
}

struct coding *coding_of_options(const struct coding_rows *o, struct err *e)
{
	char snapshots[PATH_MAX];
	struct err homeless;
	bool at_home = home_where("coding", snapshots, &homeless) == 0;

	return coding_new(&(struct coding_options){ .workspaces = o->workspaces.p,
						    .n_workspaces = o->workspaces.n,
						    .readonly = o->readonly,
						    .snapshots = at_home ? snapshots : NULL },
			  e);
}

int hub_options_check(const struct hub_options *o, struct err *e)
{
	struct limits limits = engine_limits(&o->engine);
	struct volume_roots *roots = volume_roots_new(o->volumes.p, o->volumes.n, e);

	if (!roots)
		return -1;
	volume_roots_free(roots);
	return limits_complete(&limits, e);
}

static size_t words_add(struct build_words *w, size_t n, const char *option,
			const struct option_list *values)
{
	for (size_t i = 0; i < values->n; i++) {
		w->p[n++] = option;
		w->p[n++] = values->p[i];
	}
	return n;
}

void hub_options_words(const struct hub_options *o, struct build_words *ret)
{
	size_t n = words_add(ret, 0, "--service", &o->network.services);

	n = words_add(ret, n, "--resolver", &o->network.resolvers);
	if (o->engine.allow) {
		ret->p[n++] = "--allow-missing";
		ret->p[n++] = o->engine.allow;
	}
	ret->p[n] = NULL;
}

struct upstreams *upstreams_of_gate(struct gate *gate, struct hub *hub, struct config *config,
				    const struct build_words *words, struct err *e)
{
	const struct guard *g = gate_guard(gate);

	return upstreams_new(&(struct upstreams_options){ .hub = hub,
							  .config = config,
							  .secrets = g->secrets,
							  .rules = network_rules,
							  .build = words->p,
							  .gave_secret = g->gave_secret,
							  .data = g->data },
			     e);
}

struct hub *hub_of_options(uv_loop_t *loop, const struct hub_options *o, const struct grants *g,
			   const char *registry, const char *warden_dir, struct err *e)
{
	char images[PATH_MAX], data[PATH_MAX], snapshots[PATH_MAX], workspaces[PATH_MAX],
		shots[PATH_MAX];
	struct engine_closed own;
	struct err homeless;
	/* Files without a name, for which any folder will do where there is no data folder yet. */
	bool at_home = home_where(".", data, &homeless) == 0 && access(data, W_OK) == 0;
	struct hub_config config = {
		.box = { .pool = o->pool,
			 .networks = NETWORKS_READY,
			 .max_sandboxes = o->max_sandboxes,
			 .sleep_after_ms = o->sleep_after_ms,
			 .limits = engine_limits(&o->engine),
			 .allow = o->engine.allow,
			 .warden_dir = warden_dir },
		.net = { .way = g->way,
			 .services = g->services,
			 .n_services = g->n_services,
			 .n_resolvers = g->n_resolvers },
		.registry = registry,
		.outputs = at_home ? data : P_tmpdir,
		.snapshots = registry && home_where("snapshots", snapshots, &homeless) == 0
				   ? snapshots
				   : NULL,
		.workspaces = registry && home_where("workspaces", workspaces, &homeless) == 0
				    ? workspaces
				    : NULL,
		.shots = home_where("coding", shots, &homeless) == 0 ? shots : NULL,
		.images = home_where("images", images, &homeless) < 0 ? NULL : images,
		.volumes = o->volumes.p,
		.n_volumes = o->volumes.n,
	};

	memcpy(config.net.resolvers, g->resolvers, sizeof(g->resolvers));
	engine_close_own(&own, o->config);
	config.box.closed = own.paths;
	config.box.n_closed = own.n;
	return hub_new(loop, &config, e);
}
