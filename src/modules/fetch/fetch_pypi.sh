# Fetches the package that requirements.txt names in a sandbox that reaches its index alone.
# Wheels only: nothing of a wheel runs when it is installed.
set -eu
cd /opt/package
export PIP_CONFIG_FILE=/opt/package/pip.conf
python3 -m pip --version >/dev/null 2>&1 || {
	echo "ERROR: the template has no pip: install it (on this host for \"host\")" >&2
	exit 1
}
python3 -m pip install --no-cache-dir --disable-pip-version-check --no-input --quiet \
	--only-binary=:all: --target lib --report report.json -r requirements.txt >&2
python3 pypi.py
rm -rf fetch_pypi.sh pypi.py pip.conf ca.pem requirements.txt report.json wanted.json scripts
