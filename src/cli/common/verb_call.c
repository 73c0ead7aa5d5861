#include "cli/common/verb_call.h"

#include <stdlib.h>

#include "cli/common/home.h"
#include "cli/config/config.h"
#include "config/config.h"
#include "guard/gate/gate.h"

struct verb_call {
	struct gate *gate;
	struct local *call;
};

static void verb_call_free(struct verb_call *r)
{
	gate_free(r->gate);
	free(r);
}

struct verb_call *verb_call_begin(const struct cli *cli, const char *config, const struct op *op,
				  const void *request, struct err *e)
{
	struct gate_options o = { .hooks = cli->hooks };
	AUTO(config_unref) struct config *file = NULL;
	struct verb_call *r;
	char path[PATH_MAX], data[PATH_MAX], audit[PATH_MAX];
	struct err none;
	bool must;

	if (home_config(config, path, &must, e) < 0)
		return NULL;
	o.secrets = home_where(".", data, &none) < 0 ? NULL : data;
	o.config = file = config_open(path, must, e);
	if (!file)
		return NULL;
	if (home_audit(audit, &o.audit, e) < 0)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	config_warn(file);
	r->gate = gate_open(&o, e);
	r->call = r->gate ? local_begin(gate_hooks(r->gate), op, request, e) : NULL;
	if (r->call)
		return r;
	verb_call_free(r);
	return NULL;
}

int verb_call_grant(struct verb_call *r, const struct secret_refs *refs,
		    const struct exec_secret **ret, size_t *ret_n, struct err *e)
{
	return local_grant(r->call, refs, ret, ret_n, e);
}

struct str verb_call_redact(struct verb_call *r, struct str bytes)
{
	return local_redact(r->call, bytes);
}

void verb_call_end(struct verb_call *r, const struct err *err)
{
	if (!r)
		return;
	local_end(r->call, err);
	verb_call_free(r);
}
