#pragma once
/* Shared by the files behind guard/gate/gate.h. */
#include "call/guard.h"
#include "config/config.h"
#include "guard/gate/gate.h"
#include "guard/policy/policy.h"
#include "hub/sandbox/sandbox.h"

struct gate {
	uv_loop_t *loop; /* NULL: see gate_options */
	struct hub *hub; /* NULL: none */
	const char *secrets_folder; /* borrowed while it opens; NULL: none */
	struct conversations *conversations; /* NULL: none */
	struct feed *feed; /* NULL: none */
	const char *audit_folder; /* borrowed while it opens; NULL: none */
	struct config *config; /* the last that was good; never NULL */
	size_t (*tools_of)(const struct op *op, const char **names, size_t max);
	void (*on_config)(void *owner, struct config *c);
	void (*on_ended)(void *owner, const struct principal *who); /* as in gate_options */
	void *owner;
	struct guard guard; /* what operations see of the parts */
	struct redactor *redactor;
	struct op_hooks hooks; /* parts set theirs */
	/* Each is defined in its own file. */
	struct gate_identity *identity;
	struct policy policy;
	struct gate_reload *reload;
	struct gate_approval *approval; /* NULL: nobody can be asked */
	struct gate_webhook *webhook; /* NULL: it was not needed yet */
	struct gate_network *network; /* NULL likewise */
	struct gate_audit *audit;
	struct hub_secrets to_hosts; /* guard/gate/bind.c */
	struct bind_one *kept; /* the log-in that has got tokens last; NULL: none */
};

/* What the hooks know of one call, by *call_hook_state(); in the call's arena, so that nothing has
 * to be freed. What else a part takes for a call it gives back in its audit, which every call
 * reaches. */
struct gate_call {
	enum config_then decision;
	struct str rule; /* name of the rule that decided; STR_NONE: none did */
	struct str place; /* "config.json:12"; STR_NONE likewise */
	struct str approval; /* id of what a person answered; STR_NONE: nobody was asked */
	struct audit_call *audit; /* guard/gate/audit.c */
};
/* That of a call, made at its first use. NULL without memory. */
struct gate_call *gate_call(struct call *c);

/* Another file holds from here on; a reference is taken. */
void gate_set_config(struct gate *g, struct config *c);

/* A part opens after the ones before it, and closes before them. open: fills its pointer, its hooks
 * and its place in g->guard; -1 leaves nothing behind. close: also where it was not opened. */
int gate_identity_open(struct gate *g, struct err *e) MUST_USE;
/* Whether the principal's scopes allow the operation. The hook policy begins with it. */
int gate_check_scopes(const struct principal *who, const struct op *op, struct err *e) MUST_USE;
/* By which names the operator's file decides of what belongs to an owner: as principal_who() and
 * principal_conversation(). owner may also be a principal's name. Borrowed from owner, or until the
 * loop's next turn. */
struct gate_names {
	struct str who, conversation;
	struct str makers; /* owners of the keys that made its own, as guard.makers */
};
void gate_names_of(struct gate *g, struct str owner, struct gate_names *ret);
/* An owner as the operator's file names it: a key without its id. Borrowed from owner. */
struct str gate_name_of(struct str owner);
/* The scopes of what belongs to an owner: none where its key has ended. */
unsigned gate_owner_scopes(const struct gate *g, struct str owner);
/* The owner whose share of approvals and questions is used; STR_NONE: the operator itself, who
 * always has room, unlike its agents. data: the gate. Borrowed likewise. */
struct str gate_payer(void *data, struct str owner);
void gate_start_open(struct gate *g); /* guard/gate/start.c */
void gate_identity_close(struct gate *g);
void gate_policy_reload(struct gate *g);
int gate_policy_open(struct gate *g, struct err *e) MUST_USE;
void gate_policy_close(struct gate *g);
/* Whether another file, which was read while the call waited for a person, denies it. */
int gate_recheck_policy(struct gate *g, struct call *c, struct err *e) MUST_USE;
int gate_approval_open(struct gate *g, struct err *e) MUST_USE;
void gate_approval_close(struct gate *g);
/* Whether the operator trusts this call's client with what its own person says. */
bool gate_elicits(const struct gate *g, const struct call *c);
/* Whether somebody can be asked about this call. */
bool gate_can_ask(const struct gate *g, const struct call *c);
/* The call has failed, and nothing of it was done: what it had of an approval is given back. */
void gate_approval_undone(struct gate *g, struct call *c);
void gate_approval_reload(struct gate *g);
struct approval;
int gate_webhook_check(const struct config_file *f, struct err *e) MUST_USE;
void gate_webhook_tell(struct gate *g, const struct approval *a);
void gate_webhook_close(struct gate *g);
/* A change, for the news of the hub. */
struct gate_news {
	const char *topic, *state;
	struct str id, owner, session; /* session: "": no conversation */
};
void gate_tell_news(struct gate *g, const struct gate_news *n);
int gate_question_open(struct gate *g, struct err *e) MUST_USE;
void gate_question_close(struct gate *g);
/* Needs approval and redaction. */
int gate_network_open(struct gate *g, struct err *e) MUST_USE;
void gate_network_close(struct gate *g);
/* As gate_audit_listen(). */
void gate_network_listen(struct gate *g);
int gate_redact_open(struct gate *g, struct err *e) MUST_USE;
void gate_redact_close(struct gate *g);
void gate_redact_reload(struct gate *g);
int gate_redact_check_file(const struct config_file *f, struct err *e) MUST_USE;
/* Needs the part before it. */
int gate_secret_open(struct gate *g, struct err *e) MUST_USE;
void gate_secret_close(struct gate *g);
void gate_secret_reload(struct gate *g);
int gate_secret_check_file(const struct config_file *f, struct err *e) MUST_USE;
/* The redacted text for the hub's own records; in the arena, or text itself. */
struct str gate_redact_text(const struct gate *g, struct str text, struct arena *a);
/* The arguments of a call as a person who may approve it sees them: JSON without secrets, and with
 * escapes for what shows nothing. *ret_hides: patterns hide a part of them, which nobody knows.
 * Values of secrets are hidden by name, too, but they are known to be these. */
struct str gate_redact_asked(struct redactor *r, struct str json, struct arena *a, bool *ret_hides);
/* The operator may use all, and others those that their entry of "principals" names. Such a list
 * narrows the operator's, too, and that of an owner its agents', to whom it gives nothing. */
bool gate_secret_allows(const struct config_file *f, const struct gate_names *by, bool by_operator,
			struct str name);
/* The value was given: no byte of it may leave where it can't be redacted. */
int gate_secret_gave(void *gate, struct str name, struct str value, struct err *e) MUST_USE;
struct login;
int gate_login_gave(struct gate *g, const struct login *l, struct str name, struct err *e) MUST_USE;
void gate_bind_open(struct gate *g);
void gate_bind_close(struct gate *g);
/* From here on the value is redacted, and shown by its name. */
int gate_redact_value(struct gate *g, struct str name, struct str value, struct err *e) MUST_USE;
int gate_reload_open(struct gate *g, struct err *e) MUST_USE;
void gate_reload_close(struct gate *g);
/* Bytes of all texts of a struct. */
size_t gate_bytes(const struct field_table *t, const void *from);
int gate_audit_open(struct gate *g, struct err *e) MUST_USE;
void gate_audit_close(struct gate *g);
void gate_audit_reload(struct gate *g);
/* Once nothing can fail any more: the hub ends before the gate does. */
void gate_audit_listen(struct gate *g);
/* Likewise, and when another file holds. */
void gate_policy_listen(struct gate *g);
