/*
 * `holt serve`: the hub behind the HTTP door. What was said is checked and listened on first, while
 * a hub before runs on. Then it takes that one's place, and starts the hub and the parts. It ends
 * from the outside: the door accepts nothing new and lets requests in flight finish, then the parts
 * close, then the hub. Each step starts the next in a callback.
 *
 * Sandboxes outlive a hub that is killed or crashes, and the next hub adopts them. A hub that is
 * told to yield (SIGUSR1) leaves them to the next one. A hub that is told to end stops them: their
 * files are kept, and nothing of them runs on. With SIGUSR2 it removes them.
 */
#include "cli/serve/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/log.h"
#include "cli/common/claim.h"
#include "cli/config/config.h"
#include "cli/link/link.h"
#include "cli/serve/data.h"
#include "cli/serve/engine.h"
#include "cli/serve/given.h"
#include "cli/serve/tls.h"
#include "cli/common/home.h"
#include "cli/common/verb.h"
#include "door/e2b/e2b.h"
#include "door/mcp/tools.h"
#include "door/rest/mitos.h"
#include "guard/gate/gate.h"
#include "hub/core/preview.h"

enum {
	GRACE_MS = 10000,
	CALLS_MS = 5000, /* then the end of their sandboxes ends them */
	LEAVE_MS = 1000,
	RATE_DEFAULT = 20000,
	/* Connections of browsers to previews. Each is a call while it lasts, and pages written by
	 * hostile code open as many as they like. The other half of the hub's calls is for its
	 * clients. */
	PREVIEWS_MAX = 128,
	PREVIEW_HEAD_MAX = 32 << 10, /* pages send and get cookies */
};

static const char address_default[] = "127.0.0.1:5757";

struct serve_options {
	struct verb_options common;
	struct hub_options hub;
	struct option_list listen, hosts, origins;
	struct coding_rows coding;
	struct serve_tls_files tls;
	const char *socket, *public_url, *preview, *domain, *tools, *compat;
	uint32_t rate;
	uint64_t exit_idle_ms;
	bool yield;
};

static const struct option_row rows[] = {
	OPTION(struct serve_options, listen, OPTION_LIST, "listen", .arg = "ADDR:PORT",
	       .doc = "Address to listen on, or none; 127.0.0.1:5757 by default. May be repeated."),
	OPTION(struct serve_options, socket, OPTION_TEXT, "socket", .arg = "PATH",
	       .env = "HOLT_SOCKET",
	       .doc = "Path of the Unix socket, or none; by default in the runtime folder."),
	OPTION(struct serve_options, tls.certificate, OPTION_TEXT, "tls-cert", .arg = "FILE",
	       .doc = "Certificate chain in PEM. The addresses then speak TLS."),
	OPTION(struct serve_options, tls.key, OPTION_TEXT, "tls-key", .arg = "FILE",
	       .doc = "Private key of the certificate in PEM."),
	OPTION(struct serve_options, tls.client_ca, OPTION_TEXT, "tls-client-ca", .arg = "FILE",
	       .doc = "CA certificates in PEM. Clients then need a certificate of one of them, "
		      "too."),
	OPTION(struct serve_options, hosts, OPTION_LIST, "allow-host", .arg = "NAME[:PORT]",
	       .doc = "Name that clients may use for this server. May be repeated."),
	OPTION(struct serve_options, origins, OPTION_LIST, "allow-origin", .arg = "ORIGIN",
	       .doc = "Origin whose pages may send requests (CORS), such as https://app.example. "
		      "May be repeated."),
	OPTION(struct serve_options, public_url, OPTION_TEXT, "public-url", .arg = "URL",
	       .doc = "URL of this server behind a proxy, for browsers: https://NAME[:PORT]."),
	OPTION(struct serve_options, preview, OPTION_TEXT, "preview", .arg = "ADDR:PORT",
	       .doc = "Loopback address at which browsers see servers in sandboxes; by default "
		      "none."),
	OPTION(struct serve_options, domain, OPTION_TEXT, "preview-domain", .arg = "DOMAIN",
	       .doc = "Domain below which each of their ports has its own name; localhost by "
		      "default."),
	OPTION(struct serve_options, compat, OPTION_TEXT, "compat", .arg = "LIST",
	       .env = "HOLT_COMPAT",
	       .doc = "Also serve protocols of other services: e2b, mitos (docs/compat.md)."),
	TOOLS_ROW(struct serve_options),
	CODING_ROWS(struct serve_options, coding),
	OPTION(struct serve_options, rate, OPTION_COUNT, "rate", .arg = "N", .env = "HOLT_RATE",
	       .max = 10000000,
	       .doc = "Requests per second of one client; 20000 by default, 0 for no limit."),
	OPTION(struct serve_options, exit_idle_ms, OPTION_SECONDS, "exit-idle", .arg = "TIME",
	       .min = 100, .max = 86400000,
	       .doc = "End after this time without a sandbox and without a connection."),
	OPTION(struct serve_options, yield, OPTION_FLAG, "yield",
	       .doc = "Hand the sandboxes over to another holt serve when it starts, and end."),
	HUB_ROWS(struct serve_options),
	HELP_ROW(struct serve_options),
};
static const struct option_table options = OPTION_TABLE(rows);
static const struct serve_options defaults = { .hub = HUB_DEFAULTS,
					       .domain = "localhost",
					       .rate = RATE_DEFAULT };

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };

/* An address, and its port once the hub listens there. */
struct address_at {
	const char *address; /* NULL: none */
	int port; /* 0: not yet */
};

struct serve {
	struct serving s; /* first: the parts see this */
	uv_signal_t signals[ARRAY_LEN(signals)];
	uv_timer_t idle; /* checks whether the hub is idle */
	uint64_t exit_idle_ms, used_ms; /* used_ms: when it was last seen in use */
	uint64_t requests; /* total at that time */
	struct mcp_choice tools; /* served over MCP; 0: all */
	struct secret *token;
	struct serve_tls *tls; /* NULL: none */
	struct config *config;
	struct grants grants;
	struct build_words words; /* of the hub's options */
	struct http_routes routes[SERVE_PARTS_MAX + 1]; /* empty until the parts are open */
	struct http_server *previews; /* the door for previews; NULL: none */
	struct http_routes preview_routes;
	const char **hosts; /* owned; how the door may be called */
	char names[256]; /* host names of that door */
	const char *preview_hosts[1];
	size_t closed; /* closed parts */
	bool leaves; /* the start failed, or it yields: the sandboxes must not be ended */
	bool removes; /* they end for good */
	bool took_over; /* from a hub that has ended */
	bool left; /* a sandbox could not be stopped at the end */
	int n_given; /* number of inherited sockets */
	int given_ports[GIVEN_MAX];
	struct address_at *places; /* owned, n_places */
	size_t n_places;
	struct address_at previews_at, socket_at; /* the port of a socket is 1 */
	struct claim before; /* the hub that yields to this one; pid 0: none, or it is gone */
	char socket_path[PATH_MAX];
};

/* Holders of the token; and the user who owns the socket and the token's file. */
static const struct principal by_token = { .name = "token", .scopes = KEY_ALL, .sees_all = true };
static const struct principal by_socket = {
	.name = "local", .scopes = KEY_ALL, .sees_all = true, .is_operator = true
};

/* ---- the end ------------------------------------------------------------------------------- */

static void on_hub_closed(void *arg)
{
	struct serve *v = arg;

	mcp_door_free(v->s.mcp);
	mitos_free(take_ptr(v->s.mitos));
	ops_free(v->s.ops);
	coding_free(v->s.coding);
	code_free(v->s.code);
	gate_free(take_ptr(v->s.gate));
	conversations_close(take_ptr(v->s.conversations));
	feed_free(take_ptr(v->s.feed));
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		uv_close((uv_handle_t *)&v->signals[i], NULL);
	uv_close((uv_handle_t *)&v->idle, NULL);
	uv_close((uv_handle_t *)&v->s.lag.prepare, NULL);
	serve_tls_close(take_ptr(v->tls));
}

static void on_left(void *arg, struct str sandbox, const struct err *why)
{
	struct serve *v = arg;

	v->left = true;
	claim_leave(sandbox, why->msg);
}

static void on_calls_ended(void *arg)
{
	struct serve *v = arg;

	if (v->s.hub && v->leaves)
		hub_leave(v->s.hub, on_hub_closed, v);
	else if (v->s.hub && v->removes)
		hub_close(v->s.hub, on_hub_closed, v);
	else if (v->s.hub)
		hub_keep(v->s.hub, on_left, on_hub_closed, v);
	else
		on_hub_closed(v);
}

/* Modules are parts of this hub, also where its sandboxes stay for the next one, with the programs
 * that calls have started. */
static void on_upstreams_closed(void *arg)
{
	struct serve *v = arg;
	struct err e;

	if (!v->s.ops || ops_end(v->s.ops, !v->leaves, v->leaves ? LEAVE_MS : CALLS_MS,
				 on_calls_ended, v, &e) < 0)
		on_calls_ended(v);
}

/* Their programs run in sandboxes, too. */
static void on_agents_closed(void *arg)
{
	struct serve *v = arg;

	if (v->s.upstreams)
		upstreams_close(take_ptr(v->s.upstreams), on_upstreams_closed, v);
	else
		on_upstreams_closed(v);
}

static void on_part_closed(void *arg);

static void close_next(struct serve *v)
{
	while (v->closed < serve_parts_n) {
		const struct serve_part *part = serve_parts[v->closed];
		void *of = v->s.parts[v->closed++];

		if (of && part->close) {
			part->close(of, on_part_closed, v);
			return;
		}
		if (of && part->free)
			part->free(of);
	}
	agents_close(take_ptr(v->s.agents), on_agents_closed, v);
}

static void on_part_closed(void *arg)
{
	close_next(arg);
}

static void on_door_closed(void *arg)
{
	struct serve *v = arg;

	v->s.door = NULL;
	if (!v->previews)
		close_next(v);
}

static void on_previews_closed(void *arg)
{
	struct serve *v = arg;

	v->previews = NULL;
	if (!v->s.door)
		close_next(v);
}

static void stop(struct serve *v)
{
	v->s.stopping = true;
	if (v->s.conversations)
		conversations_drain(v->s.conversations);
	if (v->s.ops)
		ops_drain(v->s.ops);
	if (v->s.mcp)
		mcp_door_end(v->s.mcp);
	for (size_t i = 0; i < serve_parts_n; i++) {
		if (v->s.parts[i] && serve_parts[i]->drain)
			serve_parts[i]->drain(v->s.parts[i]);
	}
	if (v->previews)
		http_server_close(v->previews, GRACE_MS, on_previews_closed, v);
	if (v->s.door)
		http_server_close(v->s.door, GRACE_MS, on_door_closed, v);
	else
		on_door_closed(v);
}

/* Before it is done, so that nobody loses patience unwarned. */
static void say_end(const struct serve *v)
{
	const unsigned n = hub_sandboxes_staying(hub_sandboxes(v->s.hub));
	struct hub_sandboxes_stats sandboxes;
	char ends[HUB_ENDS_MAX];

	hub_sandboxes_stats(hub_sandboxes(v->s.hub), &sandboxes);
	hub_counts_ends(&(struct hub_counts){ .commands = sandboxes.commands,
					      .forwards = sandboxes.forwards },
			ends);
	if (n)
		fprintf(stderr,
			"holt: stopping %u sandbox%s and keeping the files%s%s. A second signal "
			"ends the hub at once: what is not stopped by then runs on for the next "
			"one\n",
			n, n == 1 ? "" : "es", *ends ? "; what ends: " : "", ends);
}

/* The first signal ends the hub in order. The second ends it at once, and what it has not stopped
 * by then waits for the next one. */
static void on_signal(uv_signal_t *h, int number)
{
	struct serve *v = h->data;

	if (v->s.stopping && number == SIGUSR1)
		return;
	if (v->s.stopping)
		_exit(128 + number);
	log_info("signal %d: finishing what is in flight", number);
	v->leaves = number == SIGUSR1;
	v->removes = number == SIGUSR2;
	if (v->removes)
		box_end_with_process(hub_box(v->s.hub));
	else if (!v->leaves)
		say_end(v);
	stop(v);
}

static bool is_in_use(struct serve *v)
{
	struct http_stats http, shown = { .connections = 0 };
	struct box_stats box;
	bool asked;

	http_server_stats(v->s.door, &http);
	if (v->previews)
		http_server_stats(v->previews, &shown);
	box_stats(hub_box(v->s.hub), &box);
	asked = http.requests_total != v->requests;
	v->requests = http.requests_total;
	return asked || http.connections > 0 || shown.connections > 0 || box.live > 0 ||
	       agents_live(v->s.agents) > 0;
}

static void on_idle(uv_timer_t *timer)
{
	struct serve *v = timer->data;
	uint64_t now = uv_now(&v->s.loop);

	if (v->s.stopping)
		return;
	if (is_in_use(v))
		v->used_ms = now;
	if (now - v->used_ms < v->exit_idle_ms)
		return;
	log_info("nobody uses it");
	box_end_with_process(hub_box(v->s.hub));
	stop(v);
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* Disables core dumps, since tokens pass through buffers of libraries. */
static void harden(void)
{
	autoclose int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* so that a registry that can't grow gives an ordinary error */
	if (fd < 0 || write(fd, "0", 1) != 1)
		log_warn("a core dump of this process could show tokens");
}

/* Sandboxes, conversations and clients each take some. */
static void take_file_limits(void)
{
	struct rlimit own;

	if (getrlimit(RLIMIT_NOFILE, &own) < 0)
		return;
	own.rlim_cur = own.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &own) < 0)
		log_warn("it has few descriptors: %s", strerror(errno));
}

static const struct principal *operators_named(struct str name)
{
	static const struct principal *const all[] = { &by_token, &by_socket };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (str_is(name, all[i]->name))
			return all[i];
	}
	return NULL;
}

static const void *identify(void *of, struct str token, bool local)
{
	const struct serve *v = of;

	if (secret_is(v->token, token))
		return local ? &by_socket : &by_token;
	return gate_identify(v->s.gate, token);
}

static const void *identify_browser(void *of, struct http_request *q)
{
	struct serve *v = of;
	const void *who = NULL;

	for (size_t i = 0; i < serve_parts_n && !who; i++) {
		if (serve_parts[i]->identify)
			who = serve_parts[i]->identify(v->s.parts[i], q);
	}
	return who;
}

static const void *payer(const void *principal)
{
	return principal_payer(principal);
}

/* No agent goes on for an owner whose key has ended. owner: whose alone; STR_NONE: of all. */
static void put_away(struct serve *v, struct str owner)
{
	struct err e;

	for (size_t i = 0; i < conversations_count(v->s.conversations); i++) {
		struct conversation *t = conversations_at(v->s.conversations, i);
		const struct conversation_record *r = conversation_record(t);

		if (!r->archived && (!owner.p || str_eq(r->owner, owner)) &&
		    !ops_knows(v->s.ops, r->owner) &&
		    conversation_archive(t, true, CONVERSATION_BY_KEY, &e) < 0)
			log_error("conversation %s is not archived: %s", conversation_id(t), e.msg);
	}
}

/* Its calls first, so that what they run is ended in order; then what is no call. */
static void on_principal_ended(void *of, const struct principal *who)
{
	struct serve *v = of;

	ops_end_of(v->s.ops, who);
	if (!v->s.stopping)
		put_away(v, principal_owner(who));
	for (size_t i = 0; i < serve_parts_n; i++) {
		if (v->s.parts[i] && serve_parts[i]->end_of)
			serve_parts[i]->end_of(v->s.parts[i], who);
	}
	if (v->s.door)
		http_server_end_of(v->s.door, who);
}

static void on_config(void *of, struct config *c)
{
	struct serve *v = of;

	config_warn(c);
	if (v->s.upstreams)
		upstreams_configure(v->s.upstreams, c);
	if (v->s.agents)
		agents_configure(v->s.agents, c);
	if (v->s.mcp)
		mcp_door_reload(v->s.mcp);
	if (v->tls)
		serve_tls_configure(v->tls, config_file(c));
	else if (config_file(c)->has_tls)
		log_warn("the addresses speak plain HTTP until the hub is started again");
	for (size_t i = 0; i < serve_parts_n; i++) {
		if (v->s.parts[i] && serve_parts[i]->configure)
			serve_parts[i]->configure(v->s.parts[i], c);
	}
}

static void on_token_end(void *of, struct conversation *t)
{
	struct serve *v = of;

	gate_token_ended(v->s.gate, t);
}

static int open_conversations(struct serve *v, struct err *e)
{
	struct conversations_options o = { .on_token_end = on_token_end, .owner = v };
	char path[PATH_MAX];

	v->s.feed = home_file("conversations", path, e) < 0 ? NULL : feed_new(e);
	if (!v->s.feed)
		return -1;
	o.feed = v->s.feed;
	o.archive_seconds = config_file(v->config)->conversations.archive_days * 86400ll;
	o.trash_seconds = config_file(v->config)->conversations.trash_days * 86400ll;
	v->s.conversations = conversations_open(&v->s.loop, path, &o, e);
	return v->s.conversations ? 0 : err_wrap(e, "conversations");
}

/* A port of the door for agents alone, whatever else it listens on: opened for the first. */
static int agents_port(void *of, struct err *e)
{
	struct serve *v = of;
	int port;

	if (v->s.stopping || !v->s.door)
		return err_set(e, ERR_CANCELLED, "the hub ends");
	if (v->s.agents_port)
		return v->s.agents_port;
	port = http_server_listen(v->s.door, "127.0.0.1:0", NULL, e);
	v->s.agents_port = port > 0 ? port : 0;
	return port;
}

static int agents_check(void *of, const struct conversation *t, struct err *e)
{
	const struct serve *v = of;
	const struct guard *g = gate_guard(v->s.gate);
	const struct conversation_record *r = conversation_record(t);
	char parent[sizeof(CONVERSATION_PRINCIPAL) + CONVERSATION_ID];
	struct guard_start s = { .owner = r->owner, .agent = r->agent, .workspace = r->workspace };

	if (r->parent_session_id.n) {
		snprintf(parent, sizeof(parent), CONVERSATION_PRINCIPAL "%.*s",
			 STR_CUT(r->parent_session_id, CONVERSATION_ID));
		s.conversation = str_of(parent);
	}
	return g->check_start(g->data, &s, e);
}

static int open_agents(struct serve *v, struct err *e)
{
	const struct agents_options o = { .place = upstreams_programs(v->s.upstreams),
					  .config = v->config,
					  .conversations = v->s.conversations,
					  .questions = gate_guard(v->s.gate)->questions,
					  .check = agents_check,
					  .port = agents_port,
					  .owner = v };

	v->s.agents = agents_new(&o, e);
	return v->s.agents ? 0 : -1;
}

static int open_hub(struct serve *v, const struct verb_input *in, struct err *e)
{
	const struct serve_options *o = in->options;
	struct mcp_door_options mcp = { .only = v->tools, .readonly = o->coding.readonly };
	struct box_stats stats;
	char registry[PATH_MAX], warden[PATH_MAX], data[PATH_MAX], audit[PATH_MAX];
	const char *audit_folder;

	mcp.workspaces = coding_has_workspaces(v->s.coding);
	mcp.prefix = config_file(v->config)->conversations.tool_prefix;
	/* in one place: a hub with another registry would end the sandboxes as unknown */
	if (home_file("registry.db", registry, e) < 0 || home_file("warden", warden, e) < 0 ||
	    home_file(".", data, e) < 0 || home_audit(audit, &audit_folder, e) < 0)
		return -1;
	v->s.data = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	hub_options_words(&o->hub, &v->words);
	v->s.hub = hub_of_options(&v->s.loop, &o->hub, &v->grants, registry, warden, e);
	if (!v->s.hub || open_conversations(v, e) < 0)
		return -1;
	v->s.gate = gate_open(&(struct gate_options){ .loop = &v->s.loop,
						      .hub = v->s.hub,
						      .config = v->config,
						      .secrets = data,
						      .conversations = v->s.conversations,
						      .feed = v->s.feed,
						      .audit = audit_folder,
						      .tools_of = tools_of,
						      .hooks = in->cli->hooks,
						      .on_config = on_config,
						      .on_ended = on_principal_ended,
						      .owner = v },
			      e);
	if (!v->s.gate)
		return -1;
	config_warn(v->config);
	v->s.upstreams = upstreams_of_gate(v->s.gate, v->s.hub, v->config, &v->words, e);
	if (!v->s.upstreams || open_agents(v, e) < 0)
		return -1;
	v->s.ops = ops_new(v->s.hub,
			   &(struct ops_options){
				   .network = v->grants.allow,
				   .hooks = gate_hooks(v->s.gate),
				   .coding = v->s.coding,
				   .code = v->s.code,
				   .upstreams = v->s.upstreams,
				   .conversations = v->s.conversations,
				   .feed = v->s.feed,
			   },
			   e);
	v->s.mcp = v->s.ops ? mcp_door_new(v->s.ops, &mcp, e) : NULL;
	if (!v->s.mcp)
		return -1;
	put_away(v, STR_NONE);
	box_stats(hub_box(v->s.hub), &stats);
	if (stats.live)
		printf("Sandboxes of the hub before: %u\n", stats.live);
	return 0;
}

static int choose_compat(struct serve *v, struct str name, struct err *e)
{
	bool tokenless = str_is(name, "mitos-tokenless");

	if (str_is(name, "e2b"))
		v->s.compat_e2b = true;
	else if (tokenless || str_is(name, "mitos"))
		v->s.compat_mitos = true;
	else
		return err_set(e, ERR_INVALID,
			       "--compat: there are e2b, mitos and mitos-tokenless, not '%.*s'",
			       STR_CUT(name, 40));
	v->s.compat_tokenless |= tokenless;
	return 0;
}

/* Those of the command line and of the operator's file. */
static int read_compat(struct serve *v, const struct serve_options *o, struct err *e)
{
	const struct field_strs *apis = &config_file(v->config)->compat.apis;
	struct str list = str_of(o->compat);

	while (list.n) {
		const char *end = memchr(list.p, ',', list.n);
		struct str one = { list.p, end ? (size_t)(end - list.p) : list.n };

		list = end ? (struct str){ end + 1, list.n - one.n - 1 } : STR_NONE;
		if (choose_compat(v, str_trim(one), e) < 0)
			return -1;
	}
	for (size_t i = 0; i < apis->n; i++) {
		if (choose_compat(v, apis->p[i], e) < 0)
			return err_wrap(e, "compat.apis");
	}
	if (v->s.compat_tokenless && (o->public_url || o->hosts.n))
		return err_set(e, ERR_INVALID,
			       "--compat mitos-tokenless is for clients at this machine, so not "
			       "behind a proxy (--public-url, --allow-host)");
	return 0;
}

static int open_compat(struct serve *v, struct err *e)
{
	if (v->s.compat_mitos) {
		v->s.mitos = mitos_new(v->config, v->s.compat_tokenless ? v->s.ops : NULL,
				       &v->s.agents_port, e);
		if (!v->s.mitos)
			return -1;
	}
	if (v->s.compat_tokenless)
		log_warn("every program of this machine may use the sandboxes whose ids it knows: "
			 "--compat mitos-tokenless");
	return 0;
}

static int open_parts(struct serve *v, struct err *e)
{
	size_t n_routes = 0;

	v->routes[n_routes++] = serve_state_routes(&v->s);
	v->s.named = operators_named;
	v->s.identify = identify;
	v->s.config = v->config;
	for (size_t i = 0; i < serve_parts_n; i++) {
		if (serve_parts[i]->wanted && !serve_parts[i]->wanted(&v->s))
			continue;
		v->s.parts[i] = serve_parts[i]->open(&v->s, &v->routes[n_routes++], e);
		if (!v->s.parts[i])
			return err_wrap(e, "%s", serve_parts[i]->name);
	}
	return 0;
}

static int open_door(struct serve *v, const struct serve_options *o, struct err *e)
{
	struct http_options http = {
		.limits = { .rate = o->rate },
		.identify = identify,
		.identify_browser = identify_browser,
		.payer = payer,
		.owner = v,
		.routes = v->routes,
		.n_routes = ARRAY_LEN(v->routes),
		.n_hosts = o->hosts.n + 1 + v->s.compat_e2b,
		.origins = o->origins.p,
		.n_origins = o->origins.n,
		.public_url = o->public_url,
		.expose = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Audit-Id",
	};

	v->hosts = calloc(http.n_hosts, sizeof(*v->hosts));
	if (!v->hosts)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < o->hosts.n; i++)
		v->hosts[i] = o->hosts.p[i];
	v->hosts[o->hosts.n] = AGENT_HUB;
	if (v->s.compat_e2b)
		v->hosts[o->hosts.n + 1] = E2B_NAMES;
	http.hosts = v->hosts;
	if (o->public_url)
		snprintf(v->s.url, sizeof(v->s.url), "%s", o->public_url);
	v->s.door = http_server_new(&v->s.loop, &http, e);
	return v->s.door ? 0 : -1;
}

static bool is_none(const char *text)
{
	return strcmp(text, "none") == 0;
}

/* One where the hub before listens is left for later. */
static int listen_at(const struct serve *v, struct http_server *srv, struct address_at *at,
		     const struct http_tls *tls, struct err *e)
{
	int port;

	if (!at->address || at->port)
		return 0;
	port = http_server_listen(srv, at->address, tls, e);
	if (port > 0)
		at->port = port;
	return port < 0 && !(e->code == ERR_CONFLICT && claim_listens(&v->before, at->address)) ? -1
												: 0;
}

/* The path of the socket, or "none". */
static int find_socket(const struct serve *v, const struct serve_options *o, char ret[PATH_MAX],
		       struct err *e)
{
	struct sockaddr_un a = { 0 };

	for (int fd = GIVEN_FIRST; !o->socket && fd < GIVEN_FIRST + v->n_given; fd++) {
		socklen_t n = sizeof(a);

		if (getsockname(fd, (struct sockaddr *)&a, &n) == 0 && a.sun_family == AF_UNIX &&
		    *a.sun_path) {
			snprintf(ret, PATH_MAX, "%.*s", (int)sizeof(a.sun_path), a.sun_path);
			return 0;
		}
	}
	if (!o->socket && !v->n_given)
		return home_socket(ret, e);
	snprintf(ret, PATH_MAX, "%s", o->socket ? o->socket : "none");
	return 0;
}

static int name_places(struct serve *v, const struct serve_options *o, struct err *e)
{
	const bool by_default = o->listen.n == 0 && !v->n_given;

	v->places = calloc(o->listen.n + 1, sizeof(*v->places));
	if (!v->places)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (by_default)
		v->places[v->n_places++].address = address_default;
	for (size_t i = 0; i < o->listen.n; i++) {
		if (!is_none(o->listen.p[i]))
			v->places[v->n_places++].address = o->listen.p[i];
	}
	v->previews_at.address = o->preview;
	if (find_socket(v, o, v->socket_path, e) < 0)
		return -1;
	if (!is_none(v->socket_path) && (o->socket || !v->n_given))
		v->socket_at.address = v->socket_path;
	if (!v->n_places && !v->socket_at.address && !v->n_given)
		return err_set(e, ERR_INVALID, "there is nowhere to listen");
	return 0;
}

static int find_preview_routes(struct serve *v, struct err *e)
{
	for (size_t i = 0; i < serve_parts_n; i++) {
		if (!serve_parts[i]->previews)
			continue;
		v->preview_routes = serve_parts[i]->previews(v->s.parts[i]);
		return 0;
	}
	return err_set(e, ERR_UNSUPPORTED, "there is nothing to be seen");
}

/* Starts the door for previews. It accepts no token of the hub: a link's token opens it. So it
 * listens on loopback only. */
static int open_previews(struct serve *v, const struct serve_options *o, struct err *e)
{
	const struct http_options http = { .routes = &v->preview_routes,
					   .n_routes = 1,
					   .hosts = v->preview_hosts,
					   .n_hosts = 1,
					   .limits = { .connections = PREVIEWS_MAX,
						       .header_bytes = PREVIEW_HEAD_MAX } };
	const struct str domain = str_of(o->domain);

	v->preview_hosts[0] = v->names;
	if (preview_names(o->domain, v->names, sizeof(v->names), e) < 0)
		return err_wrap(e, "--preview");
	/* Browsers treat names below localhost as secure contexts even without TLS. */
	if (!v->tls && !str_is(domain, "localhost") && !str_ends(domain, ".localhost"))
		return err_set(
			e, ERR_INVALID,
			"--preview-domain: below '%.80s' browsers tell whose page asks only over "
			"TLS: it needs --tls-cert and --tls-key",
			o->domain);
	v->previews = http_server_new(&v->s.loop, &http, e);
	return v->previews ? 0 : -1;
}

static int show_previews(struct serve *v, const struct serve_options *o, struct err *e)
{
	struct preview_site site = { .domain = o->domain,
				     .tls = v->tls != NULL,
				     .port = v->previews_at.port };

	if (find_preview_routes(v, e) < 0)
		return err_wrap(e, "--preview");
	if (hub_show_previews(v->s.hub, &site, e) < 0)
		return -1;
	printf("Previews at %s://%s:%d\n", v->tls ? "https" : "http", v->names, site.port);
	return 0;
}

static int listen_given(struct serve *v, const struct http_tls *tls, struct err *e)
{
	for (int i = 0; i < v->n_given; i++) {
		autoclose int fd = GIVEN_FIRST + i;

		v->given_ports[i] = http_server_listen_fd(v->s.door, &fd, tls, e);
		if (v->given_ports[i] < 0)
			return -1;
	}
	return 0;
}

/* Connections wait until the loop runs. `later` leaves the socket out: a hub that a verb starts
 * binds it once it has the data folder, so that it can't be in the way of one that takes the folder
 * over. */
static int listen_all(struct serve *v, bool later, struct err *e)
{
	const struct http_tls *tls = v->tls ? serve_tls_texts(v->tls) : NULL;
	struct address_at *at = &v->socket_at;

	for (size_t i = 0; i < v->n_places; i++) {
		if (listen_at(v, v->s.door, &v->places[i], tls, e) < 0)
			return -1;
	}
	if (v->previews && listen_at(v, v->previews, &v->previews_at, tls, e) < 0)
		return -1;
	if (!at->address || at->port || later || strcmp(at->address, v->before.socket) == 0)
		return 0;
	if (http_server_listen_unix(v->s.door, at->address, e) < 0)
		return err_wrap(e, "%.120s", at->address);
	at->port = 1;
	return 0;
}

static void tell_places(struct serve *v)
{
	const char *scheme = v->tls ? "https" : "http";

	for (int i = 0; i < v->n_given; i++) {
		printf("Listening on descriptor %d", GIVEN_FIRST + i);
		if (v->given_ports[i])
			printf(", port %d", v->given_ports[i]);
		printf("\n");
	}
	for (size_t i = 0; i < v->n_places; i++) {
		const char *address = v->places[i].address;
		struct str host = { address, (size_t)(strrchr(address, ':') - address) };

		printf("Listening on %s://%.*s:%d\n", scheme, STR_ARG(host), v->places[i].port);
		if (*v->s.url)
			continue;
		/* a browser of this machine finds the hub there */
		if (str_is(host, "0.0.0.0") || str_is(host, "[::]"))
			host = STR_LIT("localhost");
		snprintf(v->s.url, sizeof(v->s.url), "%s://%.*s:%d", scheme, STR_ARG(host),
			 v->places[i].port);
	}
}

static int on_renewed(void *of, const struct http_tls *tls, struct err *e)
{
	struct serve *v = of;

	if ((v->s.door && http_server_renew(v->s.door, tls, e) < 0) ||
	    (v->previews && http_server_renew(v->previews, tls, e) < 0))
		return -1;
	return 0;
}

/* All that can be wrong with what was said, while the hub before runs on. Where that hub listens,
 * this one listens once it is gone. */
static int serve_prepare(struct serve *v, const struct serve_options *o, struct err *e)
{
	const struct http_tls *tls;

	if (o->tools && tools_choose(str_of(o->tools), &v->tools, e) < 0)
		return -1;
	v->s.coding = coding_of_options(&o->coding, e);
	v->s.code = v->s.coding ? code_new(e) : NULL;
	v->config = v->s.code ? config_find(o->hub.config, e) : NULL;
	if (!v->config || hub_options_check(&o->hub, e) < 0 ||
	    grants_read(&o->hub.network, config_file(v->config), &v->grants, e) < 0 ||
	    read_compat(v, o, e) < 0 || name_places(v, o, e) < 0 ||
	    claim_check(o->yield, &v->before, e) < 0 ||
	    data_check(v->config, v->socket_path, e) < 0 ||
	    serve_tls_open(&v->s.loop, &o->tls, config_file(v->config), &v->tls, e) < 0 ||
	    open_door(v, o, e) < 0 || (o->preview && open_previews(v, o, e) < 0))
		return -1;
	tls = v->tls ? serve_tls_texts(v->tls) : NULL;
	/* checks it, also where nothing listens yet */
	if (tls && on_renewed(v, tls, e) < 0)
		return -1;
	return listen_given(v, tls, e) < 0 ? -1 : listen_all(v, o->yield, e);
}

static int claim(struct serve *v, const struct serve_options *o, struct err *e)
{
	struct claim mine = { .yields = o->yield };
	struct hub_counts counts = { 0 };
	char ends[HUB_ENDS_MAX];

	snprintf(mine.socket, sizeof(mine.socket), "%s", v->socket_path);
	if (v->before.yields)
		hub_link_counts(v->before.socket, &counts);
	if (claim_take(&mine, e) < 0)
		return -1;
	v->took_over = v->before.yields;
	v->before = (struct claim){ .pid = 0 };
	hub_counts_ends(&counts, ends);
	if (*ends)
		printf("Ended with the hub before: %s\n", ends);
	return 0;
}

static int serve_start(struct serve *v, const struct verb_input *in, struct err *e)
{
	const struct serve_options *o = in->options;

	harden();
	take_file_limits();
	if (serve_prepare(v, o, e) < 0)
		return -1;
	v->token = home_token(e);
	if (!v->token)
		return -1;
	sha256_hex(secret_expose(v->token, "hashed"), v->s.token);
	if (claim(v, o, e) < 0 || listen_all(v, false, e) < 0 || open_hub(v, in, e) < 0 ||
	    open_compat(v, e) < 0 || open_parts(v, e) < 0)
		return -1;
	tell_places(v);
	if (v->previews && show_previews(v, o, e) < 0)
		return -1;
	if (v->socket_at.address)
		printf("Listening on %s\n", v->socket_at.address);
	if (v->tls)
		serve_tls_watch(v->tls, on_renewed, v);
	v->exit_idle_ms = o->exit_idle_ms;
	v->used_ms = uv_now(&v->s.loop);
	if (v->exit_idle_ms)
		uv_timer_start(&v->idle, on_idle, v->exit_idle_ms / 4, v->exit_idle_ms / 4);
	printf("Clients send the token that 'holt auth token' prints.\n");
	return fflush(stdout) == 0 ? 0 : err_sys(e, errno, "standard output");
}

static int serve_run(const struct verb_input *in, struct err *e)
{
	struct serve v = { .token = NULL };
	int status = 0;

	prctl(PR_SET_NAME, "holt-hub");
	v.n_given = given_sockets(e);
	if (v.n_given < 0)
		return -1;
	if (uv_loop_init(&v.s.loop) < 0) {
		err_set(e, ERR_LIMIT, "no event loop");
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		uv_signal_init(&v.s.loop, &v.signals[i]);
		v.signals[i].data = &v;
		uv_signal_start(&v.signals[i], on_signal, signals[i]);
	}
	lag_start(&v.s.lag, &v.s.loop);
	uv_timer_init(&v.s.loop, &v.idle);
	v.idle.data = &v;
	if (serve_start(&v, in, e) < 0) {
		status = cli_fail(e);
		if (v.took_over)
			fputs("holt: the hub before has ended; the next one has its sandboxes, "
			      "which run on for a day at most\n",
			      stderr);
		v.leaves = true;
		stop(&v);
	}
	uv_run(&v.s.loop, UV_RUN_DEFAULT);
	uv_loop_close(&v.s.loop);
	secret_free(v.token);
	free(v.hosts);
	free(v.places);
	grants_fini(&v.grants);
	config_unref(v.config);
	return v.left ? err_info(ERR_CLEANUP)->exit : status;
}

const struct verb serve_verb = {
	.name = "serve",
	.usage = "[OPTION...]",
	.doc = "Serve sandboxes over HTTP: MCP at /mcp and /sse.",
	.more = "Every route wants the token of `holt auth token`, but /healthz, /v1/health,\n"
		"previews, and the web page's files and log-in. Its end stops\n"
		"the sandboxes and keeps their files; the next call for one starts it again. If\n"
		"it is killed they run on, and the next one has them. The limits are those of a\n"
		"sandbox that asks for none.",
	.page = "holt-serve",
	.options = &options,
	.defaults = &defaults,
	.size = sizeof(struct serve_options),
	.run = serve_run,
};
