/* The operator's secrets: store, list, delete. Nothing reads a value. */
#include "door/http/routes.h"
#include "op/ops.h"
#include "op/secret.h"

enum { BODY_MAX = 256 << 10 }; /* the largest value with every byte escaped */

static const struct field view_fields[] = { SECRET_ROWS("name") };
static const struct field_table view_table = FIELD_TABLE(struct secret_view, view_fields);

static const struct field all_fields[] = {
	FIELD_OBJECTS(struct secrets_view, secrets, view_table, .flags = FIELD_REQUIRED,
		      .doc = "Secrets, sorted by name."),
};
static const struct field_table all_table = FIELD_TABLE(struct secrets_view, all_fields);

static const struct field removed_fields[] = {
	FIELD(struct secret_removed, status, .flags = FIELD_REQUIRED, .doc = "Always \"removed\"."),
	FIELD_NAMED(struct secret_removed, secret, "name", .flags = FIELD_REQUIRED,
		    .doc = "Name of the secret."),
};
static const struct field_table removed_table = FIELD_TABLE(struct secret_removed, removed_fields);

static const struct op_member set_members[] = { { "secret", .as = "name" } };
static const struct op_member by_path[] = { { "secret", .as = "name", .in = OP_PATH } };

static const struct api_route rows[] = {
	{ .id = "secrets.list",
	  .op = &secret_list_op,
	  .projected = true,
	  .answer = &all_table,
	  .method = HTTP_GET,
	  .path = "/v1/secrets",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "secrets.set",
	  .op = &secret_set_op,
	  .projected = true,
	  .members = OP_MEMBERS(set_members),
	  .answer = &view_table,
	  .method = HTTP_POST,
	  .path = "/v1/secrets",
	  .body_max = BODY_MAX,
	  .errors = API_MAY(CONFLICT) | API_MAY(UNSUPPORTED) | API_MAY(BODY_TOO_LARGE) },
	{ .id = "secrets.remove",
	  .op = &secret_remove_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .answer = &removed_table,
	  .method = HTTP_DELETE,
	  .path = "/v1/secrets/{name}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_secrets = API_RESOURCE(rows);
