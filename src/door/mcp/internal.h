#pragma once
/* Between the files of the MCP door. */
#include "call/call.h"
#include "call/profile.h"
#include "door/mcp/door.h"
#include "door/mcp/tools.h"
#include "hub/core/hub.h"
#include "hub/sandbox/sandbox.h"
#include "modules/upstream.h"

struct gateway;
struct mcp_run;
struct offer;
struct offers;

struct mcp_door {
	struct ops *ops;
	struct mcp_server *server;
	struct op_shape *shapes; /* one for each of tools */
	struct mcp_tool *tools; /* likewise, with the schemas printed */
	/* The same under other names, which calls may use, too: with no prefix, and with that of
	 * Mitto. Only of tools of conversations; all but the names are borrowed from `tools`. */
	struct mcp_tool *plain, *mitto;
	struct mcp_choice may, usual; /* what a client may have, and has if it asks for none */
	struct mcp_choice talking; /* has, if it speaks for a conversation and asks for none */
	const struct mcp_tool **list; /* as a session was told last */
	struct gateway *gateway; /* NULL: there are no modules */
	/* Offers of modules beside tools, as clients may see them; each holds a reference. */
	struct offers_shown {
		struct offer **p;
		size_t n;
	} offers[UPSTREAM_LISTS];
	const void **offered[UPSTREAM_LISTS]; /* owned: each as a session was told last */
	uv_timer_t *watching; /* until modules hear of what is watched; NULL: nothing ever was */
	bool ended; /* mcp_door_end() was called */
	struct str profile, modules; /* of sessions that name none */
	bool full; /* lists have whole texts, unless a session wants short ones */
	struct buf instructions; /* as a session was told last */
	struct mcp_run *asking; /* calls that have asked their client something, the newest first */
	struct mcp_roots *roots; /* as they were listed last; NULL: never */
	bool roots_changed; /* and clients were not told yet */
	struct hub_sandboxes_watch watch;
};

/* door.c: of a row of tools, by whichever name it is called. */
const struct op_shape *door_shape(const struct mcp_door *d, const struct tool *row);

/* gateway.c: tools of modules. A call of one holds it until it is gone. */
extern const struct tool gateway_tool; /* the row of all of them */
enum { GATEWAY_LIST_MAX = 1000 };
int gateway_open(struct mcp_door *d, struct err *e) MUST_USE;
void gateway_free(struct gateway *w); /* NULL-safe */
size_t gateway_list(const struct gateway *w, const struct mcp_session *s,
		    const struct mcp_tool **to, size_t max);
/* Appends, for a model, what of its modules the session does not have, and why. */
void gateway_tell(struct gateway *w, const struct mcp_session *s, struct buf *to);
/* The entry of a list for a tool of the gateway; t itself, if it is no such tool. */
const struct mcp_tool *gateway_brief(const struct mcp_tool *t);
void gateway_hold(void *door, const struct mcp_tool *t, bool on);
/* Not on the loop, which logs it later: why something is not listed. */
void gateway_says(struct buf *said, const char *fmt, ...) PRINTF_LIKE(2, 3);
int gateway_decode(struct mcp_call *mc, struct arena *a, void *request, struct err *e) MUST_USE;
/* Fills content and the like of *ret; what it borrows the caller frees, also on failure. */
int gateway_answer(struct str module, const struct mcp_tool *t, const void *result,
		   struct json_doc **ret_doc, char **ret_content, char **ret_structured,
		   struct mcp_result *ret, struct err *e) MUST_USE;

/* offers.c: resources and prompts of modules, beside the files of sandboxes. For struct
 * mcp_handler. */
const struct mcp_resource *const *offers_resources(void *door, struct mcp_session *s,
						   size_t *ret_n);
const struct mcp_template *const *offers_templates(void *door, struct mcp_session *s,
						   size_t *ret_n);
const struct mcp_prompt *const *offers_prompts(void *door, struct mcp_session *s, size_t *ret_n);
void offers_read(void *door, struct mcp_call *mc);
void offers_get(void *door, struct mcp_call *mc);
void offers_complete(void *door, struct mcp_call *mc);
bool offers_hears(void *door, struct mcp_session *s, struct str uri);
void offers_watched(void *door);
void offers_end(struct mcp_door *d);
void offers_updated(struct mcp_door *d, struct str module, struct str uri);
void offers_free(struct mcp_door *d);
/* The lists of a module, owned. Not on the loop. NULL: out of memory. */
struct offers *offers_new(struct str module, const struct field_strs lists[UPSTREAM_LISTS],
			  struct buf *said) MUST_USE;
void offers_unref(struct offers *o); /* NULL-safe */
AUTO_DEFINE(offers_unref, struct offers)
/* Adds what clients may see of it. */
void offers_show(struct offers_shown to[UPSTREAM_LISTS], const struct upstream *u,
		 struct offers *o);
/* All of it is now this, which is taken. Which lists (MCP_RESOURCES, MCP_PROMPTS) are others. */
unsigned offers_take(struct mcp_door *d, const struct offers_shown shown[UPSTREAM_LISTS]);
/* Whether it is the address of a module's resource. */
bool offers_parse(struct str uri, struct str *ret_module, struct str *ret_own);
/* Content of a result, in which addresses of the module's resources become ours. */
void offers_write_content(struct json_writer *w, struct str module, const struct json_val *content);

/* door.c: whether the session has the set "gateway". */
bool door_has_gateway(const struct mcp_door *d, const struct mcp_session *s);

/* profile.c: profiles of the operator's file by which a session asks (call/profile.h). */
struct door_profile {
	struct arena arena; /* private */
	struct config_profile p;
	bool any; /* it holds */
	struct str modules; /* only these, with commas between; empty: all */
};
/* -1: nothing may be had by it; then, too, it is freed by profile_fini(). */
int profile_init(struct door_profile *to, const struct mcp_door *d, const struct mcp_session *s,
		 struct err *e) MUST_USE;
void profile_fini(struct door_profile *to);
/* Whether the session has this module. */
bool profile_has(const struct door_profile *p, struct str module);
/* Whether these can be had. */
int profile_check(const struct mcp_door *d, const struct principal *who, struct str wanted,
		  struct err *e) MUST_USE;
/* False: it says nothing of tools. */
bool profile_tools(const struct mcp_door *d, const struct mcp_session *s, struct mcp_choice *ret);
/* Those of a call, for op_start.profiles; in a. */
int profile_of_call(const struct mcp_door *d, const struct mcp_call *mc, struct arena *a,
		    struct field_strs *ret, struct err *e) MUST_USE;

/* A tools/call as an operation. */
struct mcp_run {
	struct mcp_door *door;
	const struct tool *tool;
	struct mcp_call *mc; /* NULL: its request was answered, and the client is to come back */
	struct call *call; /* NULL: it has ended */
	/* A request for approval that the client's person is to be asked about, and the form; in
	 * the arena of mc. NULL: none. */
	const char *question, *form;
	struct run_asking *asking; /* of ask.c; NULL: it asks nothing in the middle */
	/* Its result as JSON, once that is written. */
	struct {
		bool done;
		struct err failed;
		struct buf content, structured, facts;
		struct json_writer w; /* to content, whose array is open */
	} said;
	bool timing;
	uv_timer_t timer; /* until it is a task */
};

/* call.c: makes a call of a tools/call. */
void door_call(void *door, struct mcp_call *mc);
/* Answers it, and frees r. */
void run_finish(struct mcp_run *r, const struct mcp_result *result);
void run_free(struct mcp_run *r);
/* It goes on in mc. */
void run_attach(struct mcp_run *r, struct mcp_call *mc);

/* ask.c: questions in the middle of a call, whatever the client's era. */
int run_asking_init(struct mcp_run *r, struct err *e) MUST_USE;
void run_asking_free(struct mcp_run *r);
struct arena *run_asking_arena(const struct mcp_run *r);
/* Of struct op_sink; client is the run. */
int run_on_question(void *client, struct call_question *q, struct err *e);
void run_on_unask(void *client, struct call_question *q);
/* The result of a call whose client is not there: it is kept for a while, or r is freed. */
void run_keep(struct mcp_run *r, const struct mcp_result *result);
/* Whether mc goes on with a call that has asked: then all is done. */
bool run_resumes(struct mcp_door *d, struct mcp_call *mc);
/* The session has ended, NULL: all of them: who would come back for a call? */
void run_asking_end(struct mcp_door *d, const struct mcp_session *s);
/* call.c: what op_start.session is for a call; all requests without a session share one. */
const void *door_session(const struct mcp_door *d, const struct mcp_call *mc);
/* The op_start.log_level of a call. */
unsigned door_log_level(const struct mcp_call *mc);

/* files.c: the files of sandboxes as resources. */
const struct mcp_resource *const *files_roots(void *door, struct mcp_session *s, size_t *ret_n);
const struct mcp_template *const *files_templates(void *door, struct mcp_session *s, size_t *ret_n);
void files_read(void *door, struct mcp_call *mc);
void files_complete(void *door, struct mcp_call *mc);
/* Tells clients, later, that the list of resources has changed. */
void files_roots_watch(struct mcp_door *d);
void files_roots_free(struct mcp_door *d);

/* sandbox_list_files.c: a directory as models see it. */
extern const struct field_table tool_listing_table;

/* says.c: the text of an answer, by its tool's row. */
int tool_text(const struct tool *t, const void *request, const void *result, struct buf *to,
	      struct err *e) MUST_USE;
