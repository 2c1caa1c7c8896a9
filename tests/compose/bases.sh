# shellcheck shell=bash disable=SC2154
# The project's images, built from compose/Dockerfile as docker compose builds them. Its
# base images cannot be pulled: stand-ins with the same names are made from this machine's
# Go and Node.js and from Debian's packages. Sourced by stack.sh after standin.sh.

# base_image NAME: the tag that the Dockerfile pins.
base_image() { grep -ohE "(^FROM |=)$1:[^ ]+" "$root/compose/Dockerfile" | head -n 1 | sed -E 's/^(FROM |=)//'; }

base_golang() {
	local dir=$work/rootfs goroot
	goroot=$(go env GOROOT)
	base "$dir"
	mkdir -p "$dir/usr/local/go" "$dir/go"
	cp -r "$goroot"/{bin,lib,pkg,src,go.env,VERSION} "$dir/usr/local/go/"
	program "$dir" curl
	certificates "$dir"
	finish "$dir" "$(base_image golang)" 'ENV PATH=/go/bin:/usr/local/go/bin:/bin' 'ENV GOPATH=/go' 'ENV GOTOOLCHAIN=local' \
		"ENV GOPROXY=$(go env GOPROXY)" 'WORKDIR /go'
}

base_node() {
	local dir=$work/rootfs npm
	npm=$(readlink -f "$(command -v npm)")
	base "$dir"
	program "$dir" node
	mkdir -p "$dir${npm%/*/*}"
	cp -rL "${npm%/*/*}/." "$dir${npm%/*/*}/"
	ln -s "$npm" "$dir/bin/npm"
	ln -s /bin/env "$dir/usr/bin/env"
	certificates "$dir"
	finish "$dir" "$(base_image node)" 'ENV PATH=/bin' "ENV NODE_EXTRA_CA_CERTS=$certificates"
}

# A new Debian; the images install packages from Debian's servers.
base_debian() {
	local dir=$work/debian
	debootstrap --variant=minbase bookworm "$dir" "${BENCHWATCH_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/debootstrap.log" 2>&1 ||
		die "debootstrap failed: $(tail -n 3 "$work/debootstrap.log")"
	rm -rf "$dir"/var/cache/apt/archives/*.deb "$dir"/var/lib/apt/lists/*
	finish "$dir" "$(base_image debian)" 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' 'CMD ["bash"]'
}

certificates=/etc/ssl/certs/ca-certificates.crt
certificates() { install -D -m 0644 "$certificates" "$1$certificates"; }

# ycsb_mirror: the archives of YCSB that the Dockerfile fetches. If their host cannot be
# reached, archives of the same layout with the core of YCSB from Maven, which has no
# driver but runs its workloads without a database (binding "basic").
ycsb_mirror() {
	local url version dir=$work/ycsb binding
	url=$(sed -n 's/^ARG YCSB_URL=//p' "$root/compose/Dockerfile")
	version=$(sed -n 's/^ARG YCSB_VERSION=//p' "$root/compose/Dockerfile")
	if curl -fsSLI --max-time 20 "$url/$version/ycsb-mongodb-binding-$version.tar.gz" >/dev/null 2>&1; then
		echo 'YCSB comes from its own host'
		return
	fi
	echo "YCSB's host cannot be reached: only its core stands in, from Maven"
	mkdir -p "$dir/$version" "$dir/y"/{bin,lib,workloads}
	install "$root/tests/compose/standin/ycsb.sh" "$dir/y/bin/ycsb.sh"
	for jar in site/ycsb/core/$version/core-$version org/apache/htrace/htrace-core4/4.1.0-incubating/htrace-core4-4.1.0-incubating \
		org/hdrhistogram/HdrHistogram/2.1.4/HdrHistogram-2.1.4 org/codehaus/jackson/jackson-core-asl/1.9.4/jackson-core-asl-1.9.4 \
		org/codehaus/jackson/jackson-mapper-asl/1.9.4/jackson-mapper-asl-1.9.4; do
		curl -fsS --max-time 120 -o "$dir/y/lib/${jar##*/}.jar" "https://repo1.maven.org/maven2/$jar.jar"
	done
	printf '%s\n' recordcount=1000 operationcount=1000 workload=site.ycsb.workloads.CoreWorkload readproportion=0.5 updateproportion=0.5 \
		scanproportion=0 insertproportion=0 requestdistribution=zipfian >"$dir/y/workloads/workloada"
	for binding in mongodb jdbc; do
		tar -C "$dir" -czf "$dir/$version/ycsb-$binding-binding-$version.tar.gz" y
	done
	YCSB_SHA256=$(sha256sum <"$dir/$version/ycsb-mongodb-binding-$version.tar.gz" | cut -d ' ' -f 1)
	tpcc_standin "$dir"
	local port=$((first_port + 4))
	setsid busybox httpd -f -p "127.0.0.1:$port" -h "$dir" >"$work/mirror.log" 2>&1 </dev/null &
	# shellcheck disable=SC2034 # stack.sh ends it
	mirror_pid=$!
	export YCSB_SHA256 YCSB_URL=http://127.0.0.1:$port TPCC_URL=http://127.0.0.1:$port TPCC_TREE
}

# tpcc_standin FOLDER: an archive of the layout of tpcc-mysql, whose programs print where they stand in.
tpcc_standin() {
	local commit t=$1/tpcc
	commit=$(sed -n 's/^ARG TPCC_COMMIT=//p' "$root/compose/Dockerfile")
	mkdir -p "$t/src"
	printf 'all:\n\tprintf "#!/bin/sh\\necho stand-in\\n" >../tpcc_load && chmod 755 ../tpcc_load && cp ../tpcc_load ../tpcc_start\n' >"$t/src/Makefile"
	touch "$t/create_table.sql" "$t/add_fkey_idx.sql"
	TPCC_TREE=$(cd "$t" && git init -q . && git add -f . && git write-tree)
	rm -rf "$t/.git"
	tar -C "$1" -czf "$1/$commit.tar.gz" tpcc
}

# build SERVICE: from the Dockerfile, with the engine's BuildKit.
build() { compose --profile '*' build "$1"; }
