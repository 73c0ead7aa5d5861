# Fetches the package of package.json in a sandbox that reaches its registry alone.
set -eu
cd /opt/package
export npm_config_cache=/tmp/npm npm_config_userconfig=/opt/package/.npmrc
# Of files that it has no room for npm warns alone, and goes on.
export npm_config_loglevel=warn npm_config_update_notifier=false
command -v npm >/dev/null || {
	echo "npm error the template has no npm: install it (on this host for \"host\")" >&2
	exit 1
}
# Read as a whole, and what was found before a script runs is what is told.
{
	npm install --ignore-scripts --no-audit --no-fund --omit=dev >&2
	node npm.js
	if test -e scripts; then
		found=$(cat package.holt.json)
		npm rebuild --no-audit --no-fund >&2
		printf '%s' "$found" >package.holt.json
	fi
	rm -rf fetch_npm.sh npm.js .npmrc ca.pem scripts /tmp/npm
	exit
}
