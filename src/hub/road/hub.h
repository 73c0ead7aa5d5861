#pragma once
/*
 * The hub: owns the sandboxes, the table of tools and the gate through which every call goes. It
 * lives on one loop and joins what is below it: the engine (box/) and the protocol (mcp/).
 */
#include <uv.h>

#include "box/host/box.h"
#include "hub/road/call.h"
#include "hub/sandbox/life.h"
#include "hub/road/tool.h"
#include "mcp/server/server.h"

struct hub;

struct hub_config {
	struct box_config box; /* its on_end and find_template are the hub's */
	const char
		*registry; /* file of what is remembered (store/); NULL: nothing outlives the hub */
	const char *
		outputs; /* folder for what programs in the background print; NULL: in memory only */
	const char *
		images; /* path of the store of images (hub/image/images.h), which may not be there yet; NULL: none */
	const char *
		snapshots; /* path of their folder, made if missing; with a registry only; NULL: none */
	const struct tool *const *tools; /* in the order in which clients list them */
	size_t n_tools;
	unsigned max_calls; /* at once, of all askers; 0: 256 */
	unsigned max_waiting; /* calls that only wait, which do not count among those; 0: 768 */
	size_t max_output; /* bytes of output that all calls may keep; 0: 512 MiB */
};

/* Starts the engine. config is borrowed for this call, its tools until on_closed. */
struct hub *hub_new(uv_loop_t *loop, const struct hub_config *config, struct err *e) MUST_USE;

/* Ends the engine with all sandboxes and calls, then calls on_closed, after which the hub is gone.
 * All sessions of its MCP server are closed before. */
void hub_close(struct hub *hub, void (*on_closed)(void *arg), void *arg);

/* The same, but leaves sandboxes that outlive the hub to the next one: box_leave(). */
void hub_leave(struct hub *hub, void (*on_closed)(void *arg), void *arg);

/* From now on there are links to servers in sandboxes (hub/road/preview.h), at this site. */
struct preview_site;
int hub_show_previews(struct hub *hub, const struct preview_site *site, struct err *e) MUST_USE;
struct previews;
const struct previews *hub_previews(const struct hub *hub); /* NULL: none */

struct box *hub_box(struct hub *hub);
struct lives *hub_lives(struct hub *hub);

/* The MCP server that offers the tools. The data of its sessions is a const struct principal *. */
struct mcp_server *hub_mcp(struct hub *hub);
