#include <signal.h>
#include <string.h>
#include <uv.h>

#include "cli/serve/engine.h"
#include "cli/common/home.h"
#include "cli/config/config.h"
#include "cli/remote/remote.h"
#include "door/mcp/door.h"
#include "door/mcp/tools.h"
#include "guard/gate/gate.h"
#include "mcp/connect/relay.h"
#include "mcp/transport/stdio.h"

/* How long calls may run after the client has closed its output. */
enum { DRAIN_MS = 5000, PROFILE_MAX = 4096 };

struct mcp_options {
	struct verb_options common;
	struct hub_options hub;
	struct coding_rows coding;
	struct option_list profiles;
	const char *connect, *tools, *modules, *texts;
	bool stdio; /* said; there is nothing else */
	struct remote_options remote;
};

static const struct option_row rows[] = {
	OPTION(struct mcp_options, connect, OPTION_TEXT, "connect", .arg = "URL",
	       .doc = "Serve the sandboxes of a running hub: http://HOST:PORT or unix:PATH."),
	REMOTE_ROWS(struct mcp_options, remote),
	OPTION(struct mcp_options, stdio, OPTION_FLAG, "stdio",
	       .doc = "Serve over standard input and output, as it does without this."),
	TOOLS_ROW(struct mcp_options),
	OPTION(struct mcp_options, profiles, OPTION_LIST, "profile", .arg = "NAME",
	       .doc = "Offer only what this profile of the operator's file allows. May be "
		      "repeated."),
	OPTION(struct mcp_options, modules, OPTION_TEXT, "modules", .arg = "LIST",
	       .doc = "Of the gateway, only the tools of these modules, with commas between."),
	OPTION(struct mcp_options, texts, OPTION_TEXT, "texts", .arg = "full|short",
	       .doc = "Whether lists have the whole texts of modules (short)."),
	CODING_ROWS(struct mcp_options, coding),
	HUB_ROWS(struct mcp_options),
	HELP_ROW(struct mcp_options),
};
static const struct option_table options = OPTION_TABLE(rows);
static const struct mcp_options defaults = { .hub = HUB_DEFAULTS };

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

struct stdio_serving {
	uv_loop_t loop;
	uv_signal_t signals[ARRAY_LEN(signals)];
	struct config *config;
	struct gate *gate;
	struct grants grants;
	struct build_words words; /* of the hub's options */
	struct hub *hub;
	struct coding *coding;
	struct code *code;
	struct upstreams *upstreams;
	struct ops *ops;
	struct mcp_door *door;
	struct mcp_stdio *stdio;
	struct mcp_relay *relay; /* in place of both */
	struct secret *token; /* that it sends */
	struct buf profile; /* with commas between */
	bool stopping;
};

static void on_hub_closed(void *arg)
{
	struct stdio_serving *s = arg;

	mcp_door_free(s->door);
	ops_free(s->ops);
	coding_free(s->coding);
	code_free(s->code);
	gate_free(take_ptr(s->gate));
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		uv_close((uv_handle_t *)&s->signals[i], NULL);
}

static void on_relay_closed(void *owner)
{
	struct stdio_serving *s = owner;

	s->stopping = true;
	s->relay = NULL;
	on_hub_closed(s);
}

static void on_calls_ended(void *owner)
{
	struct stdio_serving *s = owner;

	hub_close(s->hub, on_hub_closed, s);
}

static void on_upstreams_closed(void *owner)
{
	struct stdio_serving *s = owner;
	struct err e;

	if (!s->ops || ops_end(s->ops, true, DRAIN_MS, on_calls_ended, s, &e) < 0)
		on_calls_ended(s);
}

static void close_hub(struct stdio_serving *s)
{
	if (s->upstreams)
		upstreams_close(take_ptr(s->upstreams), on_upstreams_closed, s);
	else
		on_upstreams_closed(s);
}

static void on_stdio_closed(void *owner)
{
	struct stdio_serving *s = owner;

	s->stopping = true;
	mcp_stdio_free(take_ptr(s->stdio));
	mcp_door_end(s->door);
	close_hub(s);
}

/* The first signal ends it in order, the second at once; then the warden cleans up. */
static void on_signal(uv_signal_t *h, int number)
{
	struct stdio_serving *s = h->data;

	if (s->stopping)
		_exit(128 + number);
	s->stopping = true;
	if (s->relay)
		mcp_relay_stop(s->relay);
	else
		mcp_stdio_stop(s->stdio);
}

#define UNIX_PREFIX "unix:"

static int connect_to(struct stdio_serving *s, const struct mcp_options *to, struct err *e)
{
	const char *where = to->connect;
	bool local = strncmp(where, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0;
	struct mcp_relay_options o = {
		.url = local ? "http://localhost" : where,
		.tools = to->tools,
		.profile = s->profile.n ? s->profile.p : NULL,
		.modules = to->modules,
		.texts = to->texts,
		.unix_socket = local ? where + strlen(UNIX_PREFIX) : NULL,
		.drain_ms = DRAIN_MS,
		.on_closed = on_relay_closed,
		.owner = s,
	};

	if (home_token_for(o.url, &s->token, &o.own_only, e) < 0 ||
	    mcp_stdio_claim(&o.in_fd, &o.out_fd, e) < 0)
		return -1;
	o.token = s->token;
	s->relay = mcp_relay_start(&s->loop, &o, e);
	return s->relay ? 0 : -1;
}

static void on_config(void *of, struct config *c)
{
	struct stdio_serving *s = of;

	config_warn(c);
	if (s->upstreams)
		upstreams_configure(s->upstreams, c);
	if (s->door)
		mcp_door_reload(s->door);
}

static int mcp_start(struct stdio_serving *s, const struct verb_input *in, struct err *e)
{
	const struct mcp_options *o = in->options;
	char audit[PATH_MAX];
	const char *audit_folder;
	struct mcp_door_options door = { .readonly = o->coding.readonly };
	char data[PATH_MAX];
	struct err none;
	struct mcp_stdio_options stdio = {
		.drain_ms = DRAIN_MS,
		.data = (void *)&principal_local,
		.on_closed = on_stdio_closed,
		.owner = s,
	};

	if (o->connect && (o->coding.workspaces.n || o->coding.readonly))
		return err_set(e, ERR_INVALID,
			       "--workspace and --readonly are options of the hub (holt serve), "
			       "not of --connect");
	for (size_t i = 0; i < o->profiles.n; i++) {
		if (buf_addf(&s->profile, e, "%s%s", i ? "," : "", o->profiles.p[i]) < 0)
			return -1;
	}
	door.profile = buf_str(&s->profile);
	if (o->connect)
		return connect_to(s, o, e);
	door.modules = str_of(o->modules);
	if (o->texts && tools_texts(str_of(o->texts), &door.full, e) < 0)
		return -1;
	if (o->tools && tools_choose(str_of(o->tools), &door.only, e) < 0)
		return -1;
	s->coding = coding_of_options(&o->coding, e);
	s->code = s->coding ? code_new(e) : NULL;
	if (!s->code)
		return -1;
	door.workspaces = coding_has_workspaces(s->coding);
	if (mcp_stdio_claim(&stdio.in_fd, &stdio.out_fd, e) < 0)
		return -1;
	s->config = home_audit(audit, &audit_folder, e) < 0 ? NULL : config_find(o->hub.config, e);
	if (!s->config || grants_read(&o->hub.network, config_file(s->config), &s->grants, e) < 0)
		return -1;
	config_warn(s->config);
	hub_options_words(&o->hub, &s->words);
	s->hub = hub_of_options(&s->loop, &o->hub, &s->grants, NULL, NULL, e);
	s->gate = s->hub
			? gate_open(
				  &(struct gate_options){
					  .loop = &s->loop,
					  .hub = s->hub,
					  .config = s->config,
					  .tools_of = tools_of,
					  .secrets = home_where(".", data, &none) < 0 ? NULL : data,
					  .audit = audit_folder,
					  .hooks = in->cli->hooks,
					  .on_config = on_config,
					  .owner = s },
				  e)
			: NULL;
	s->upstreams = s->gate ? upstreams_of_gate(s->gate, s->hub, s->config, &s->words, e) : NULL;
	s->ops = s->upstreams ? ops_new(s->hub,
					&(struct ops_options){
						.network = s->grants.allow,
						.hooks = gate_hooks(s->gate),
						.coding = s->coding,
						.code = s->code,
						.upstreams = s->upstreams,
					},
					e)
			      : NULL;
	s->door = s->ops ? mcp_door_new(s->ops, &door, e) : NULL;
	if (!s->door || mcp_door_check(s->door, &principal_local, e) < 0)
		return -1;
	s->stdio = mcp_stdio_start(&s->loop, mcp_door_server(s->door), &stdio, e);
	return s->stdio ? 0 : -1;
}

/* Options of --server and options of a hub exclude each other. */
static int check_remote(const struct mcp_options *o, struct err *e)
{
	const struct remote_options *r = &o->remote;

	if (!r->server && (r->token.token || r->token.file || r->workspaces || r->tls.ca ||
			   r->tls.certificate || r->tls.key))
		return err_set(e, ERR_INVALID,
			       "--token, --token-file, --enable-workspace-tools, --ca, --tls-cert "
			       "and --tls-key are about --server");
	if (r->server && (o->connect || o->tools || o->profiles.n || o->modules || o->texts ||
			  o->coding.workspaces.n || o->coding.readonly))
		return err_set(e, ERR_INVALID,
			       "--connect, --tools, --profile, --modules, --texts, --workspace and "
			       "--readonly exclude --server");
	return 0;
}

static int mcp_run(const struct verb_input *in, struct err *e)
{
	const struct mcp_options *o = in->options;
	struct stdio_serving s = { .profile = BUF_INIT(PROFILE_MAX) };
	int status = 0;

	if (check_remote(o, e) < 0)
		return cli_wrong_usage(in->verb, e);
	if (o->remote.server)
		return remote_run(&o->remote);

	if (uv_loop_init(&s.loop) < 0) {
		err_set(e, ERR_LIMIT, "no event loop");
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		uv_signal_init(&s.loop, &s.signals[i]);
		s.signals[i].data = &s;
	}
	if (mcp_start(&s, in, e) < 0) {
		status = cli_fail(e);
		if (s.hub)
			close_hub(&s);
		else
			on_hub_closed(&s);
	} else {
		for (size_t i = 0; i < ARRAY_LEN(signals); i++)
			uv_signal_start(&s.signals[i], on_signal, signals[i]);
	}
	uv_run(&s.loop, UV_RUN_DEFAULT);
	uv_loop_close(&s.loop);
	secret_free(s.token);
	buf_fini(&s.profile);
	grants_fini(&s.grants);
	config_unref(s.config);
	return status;
}

const struct verb mcp_verb = {
	.name = "mcp",
	.usage = "[OPTION...]",
	.doc = "Serve sandboxes over MCP on standard input and output.",
	.more = "For the mcpServers of a client: { \"command\": \"holt\", \"args\": [\"mcp\"] }.\n"
		"The sandboxes end with it. New sandboxes have these limits by default.\n"
		"With --connect it has none of its own. HOLT_TOKEN is then the hub's token;\n"
		"for a hub on this machine, that of holt auth token is used. --server asks a\n"
		"server by its REST instead, such as that of mitos; man holt-mcp has more.",
	.page = "holt-mcp",
	.options = &options,
	.defaults = &defaults,
	.size = sizeof(struct mcp_options),
	.words = mcp_words,
	.run = mcp_run,
};
