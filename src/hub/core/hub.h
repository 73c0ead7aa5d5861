#pragma once
/* The hub owns the sandboxes: it lives on one loop and joins the engine (box/) and the registry (store/). What can be
 * asked of it is an operation (op/). */
#include <uv.h>

#include "box/host/box.h"
#include "hub/sandbox/life.h"

struct hub;

struct hub_config {
	struct box_config box; /* its on_end and find_template are the hub's */
	const char
		*registry; /* file of what is remembered (store/); NULL: nothing outlives the hub */
	const char *
		outputs; /* folder for what programs in the background print; NULL: in memory only */
	const char *
		images; /* path of the store of images (hub/images.h), which may not be there yet; NULL: none */
	const char *
		snapshots; /* path of their folder, made if missing; with a registry only; NULL: none */
};

/* Starts the engine. config is borrowed for this call. */
struct hub *hub_new(uv_loop_t *loop, const struct hub_config *config, struct err *e) MUST_USE;

/* Ends the engine with all sandboxes and calls, then calls on_closed, after which the hub is gone.
 * No call is started any more. */
void hub_close(struct hub *hub, void (*on_closed)(void *arg), void *arg);

/* The same, but leaves sandboxes that outlive the hub to the next one: box_leave(). */
void hub_leave(struct hub *hub, void (*on_closed)(void *arg), void *arg);

/* From now on there are links to servers in sandboxes (hub/preview.h), at this site. */
struct preview_site;
int hub_show_previews(struct hub *hub, const struct preview_site *site, struct err *e) MUST_USE;
struct previews;
const struct previews *hub_previews(const struct hub *hub); /* NULL: none */

uv_loop_t *hub_loop(struct hub *hub);
struct box *hub_box(struct hub *hub);
struct lives *hub_lives(struct hub *hub);
const char *hub_images(const struct hub *hub); /* path of their store; NULL: none */
bool hub_closing(const struct hub *hub);
