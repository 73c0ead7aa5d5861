#pragma once
/* The hub owns the sandboxes. It runs on one loop and joins the engine (box/) with the registry
 * (store/). Clients reach it through operations (op/). */
#include <uv.h>

#include "box/host/box.h"
#include "hub/net/net.h"
#include "hub/sandbox/sandbox.h"

struct hub;
struct store;

struct hub_config {
	struct box_config box; /* its on_end and find_template are the hub's */
	struct nets_options net; /* its on_flow is the hub's */
	/* path of the registry's database (store/); NULL: nothing outlives the hub */
	const char *registry;
	/* folder for the output of background programs; NULL: in memory only */
	const char *outputs;
	/* path of the image store (hub/image/images.h), which need not exist yet; NULL: none */
	const char *images;
	/* path of the snapshots' folder, made if missing; needs a registry; NULL: none */
	const char *snapshots;
	/* path of the folder of workspaces, likewise; NULL: none */
	const char *workspaces;
	/* of snapshots of coding sessions, which count for the bound of both; NULL: none */
	const char *shots;
	/* folders of the host that clients may give to sandboxes (hub/sandbox/volumes.h) */
	const char *const *volumes;
	size_t n_volumes;
};

/* Starts the engine. config is borrowed for this call. */
struct hub *hub_new(uv_loop_t *loop, const struct hub_config *config, struct err *e) MUST_USE;

/* Ends the engine with all sandboxes and calls, then calls on_closed and frees the hub. No call
 * starts after it. */
void hub_close(struct hub *hub, void (*on_closed)(void *arg), void *arg);

/* Like hub_close(), but sandboxes are stopped, and keep their files. Those of which they can't be
 * kept stay for the next hub: hub_leave(); on_left hears of each. */
void hub_keep(struct hub *hub,
	      void (*on_left)(void *arg, struct str sandbox, const struct err *why),
	      void (*on_closed)(void *arg), void *arg);

/* Like hub_close(), but sandboxes that outlive the hub stay for the next one: box_leave(). */
void hub_leave(struct hub *hub, void (*on_closed)(void *arg), void *arg);

/* Enables preview links to servers in sandboxes, below this site (hub/core/preview.h). */
struct preview_site;
int hub_show_previews(struct hub *hub, const struct preview_site *site, struct err *e) MUST_USE;
struct previews;
const struct previews *hub_previews(const struct hub *hub); /* NULL: none */

uv_loop_t *hub_loop(struct hub *hub);
struct box *hub_box(struct hub *hub);
struct hub_sandboxes *hub_sandboxes(struct hub *hub);
struct workspaces;
struct workspaces *hub_workspaces(struct hub *hub); /* NULL: none are kept */
struct nets;
struct nets *hub_nets(struct hub *hub);
struct store *hub_store(struct hub *hub); /* the registry's; NULL: none */
int hub_check(struct hub *hub, struct err *e) MUST_USE; /* whether the registry can be written */
const char *hub_images(const struct hub *hub); /* path of their store; NULL: none */
bool hub_closing(const struct hub *hub);
