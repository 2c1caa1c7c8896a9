# shellcheck shell=bash disable=SC2154
# Stand-in images for those that compose/ names, from what is installed on this machine.
# Sourced by stack.sh, which sets root and work (a folder).

# image NAME: the tag that compose/ pins, so that a change of version is followed.
image() { compose --profile '*' config --images | sort -u | grep -E "^(.*/)?$1:"; }

# files DIR PATH...: copies programs or libraries and the libraries that they need.
files() {
	local dir=$1 file library
	shift
	for file; do
		file=$(readlink -f "$file")
		[[ -e $dir$file ]] || install -D "$file" "$dir$file"
		while read -r library; do
			[[ -e $dir$library ]] || install -D "$(readlink -f "$library")" "$dir$library"
		done < <(ldd "$file" 2>/dev/null | grep -oE '/[^ ]+')
	done
}

# base DIR: busybox with its commands, users and folders.
base() {
	mkdir -p "$1"/{bin,usr/bin,usr/sbin,etc,tmp,root,run,var/lib}
	chmod 1777 "$1/tmp"
	program "$1" busybox # Debian has a static and a dynamic one
	local name
	for name in $(busybox --list); do
		[[ $name == busybox ]] || ln -sf /bin/busybox "$1/bin/$name"
	done
	cat >"$1/etc/passwd" <<-END
		root:x:0:0::/root:/bin/sh
		mysql:x:999:999::/var/lib/mysql:/bin/sh
		nobody:x:65534:65534::/:/bin/sh
	END
	printf 'root:x:0:\nmysql:x:999:\nnobody:x:65534:\n' >"$1/etc/group"
	echo 'hosts: files dns' >"$1/etc/nsswitch.conf"
	# The resolver of dynamic programs is loaded by name.
	files "$1" /lib/*-linux-gnu/libnss_dns.so.2 /lib/*-linux-gnu/libnss_files.so.2
}

# program_file COMMAND NAME: the file; one in the folder PROGRAMS has precedence.
program_file() {
	if [[ -x ${PROGRAMS:-}/$2 ]]; then readlink -f "$PROGRAMS/$2"; else readlink -f "$(command -v "$1")"; fi
}

# program DIR COMMAND [NAME]: the command as /bin/NAME.
program() {
	local file name=${3:-$2}
	file=$(program_file "$2" "$name")
	files "$1" "$file"
	ln -sf "$file" "$1/bin/$name"
}

# finish DIR IMAGE CHANGE...: the folder becomes the image.
finish() {
	local dir=$1 name=$2 change changes=()
	shift 2
	for change; do changes+=(--change "$change"); done
	tar -C "$dir" --numeric-owner -c . | docker import "${changes[@]}" - "$name" >/dev/null
	rm -rf "$dir"
}

standin_core() {
	local dir=$work/rootfs
	base "$dir"
	finish "$dir" "$(image busybox)" 'ENV PATH=/bin' 'CMD ["sh"]'

	base "$dir"
	program "$dir" prometheus
	mkdir -p "$dir/prometheus" "$dir/etc/prometheus"
	chown 65534:65534 "$dir/prometheus"
	finish "$dir" "$(image prometheus)" 'ENV PATH=/bin' 'USER 65534' 'WORKDIR /prometheus' 'ENTRYPOINT ["/bin/prometheus"]'

	base "$dir"
	program "$dir" prometheus-alertmanager alertmanager
	mkdir -p "$dir/alertmanager" "$dir/usr/share/prometheus"
	# Debian's package has the templates in separate files.
	cp -r /usr/share/prometheus/alertmanager "$dir/usr/share/prometheus/"
	chown 65534:65534 "$dir/alertmanager"
	finish "$dir" "$(image alertmanager)" 'ENV PATH=/bin' 'USER 65534' 'WORKDIR /alertmanager' 'ENTRYPOINT ["/bin/alertmanager"]'

	base "$dir"
	program "$dir" prometheus-node-exporter node_exporter
	finish "$dir" "$(image node-exporter)" 'ENV PATH=/bin' 'USER 65534' 'ENTRYPOINT ["/bin/node_exporter"]'
}

# standin_grafana HOME BINARY
standin_grafana() {
	local dir=$work/rootfs
	base "$dir"
	files "$dir" "$2"
	program "$dir" curl
	ln -sf "$(readlink -f "$2")" "$dir/bin/grafana"
	mkdir -p "$dir/usr/share/grafana" "$dir/var/lib/grafana" "$dir/etc/grafana/provisioning"/{access-control,alerting,dashboards,datasources,notifiers,plugins}
	cp -r "$1/conf" "$1/public" "$dir/usr/share/grafana/"
	install "$root/tests/compose/standin/grafana.sh" "$dir/run.sh"
	chown -R 472:0 "$dir/var/lib/grafana"
	finish "$dir" "$(image grafana)" 'ENV PATH=/bin' 'ENV GF_PATHS_DATA=/var/lib/grafana' \
		'ENV GF_PATHS_PROVISIONING=/etc/grafana/provisioning' 'ENV GF_PATHS_PLUGINS=/var/lib/grafana/plugins' \
		'ENV GF_PATHS_LOGS=/var/lib/grafana/log' 'ENV GF_PLUGINS_PREINSTALL_DISABLED=true' 'USER 472' 'ENTRYPOINT ["/run.sh"]'
}

# mysql9: whether MySQL 9 is unpacked; otherwise MariaDB stands in.
mysql9() { [[ -x ${BENCHWATCH_UNPACKED:-$root/build}/mysql9/usr/sbin/mysqld ]]; }

server_mysql9() {
	local dir=$work/rootfs
	mkdir -p "$dir/usr"
	cp -r "${BENCHWATCH_UNPACKED:-$root/build}/mysql9/usr/." "$dir/usr/"
	rm -rf "$dir"/usr/{share/doc,share/perl*,lib/x86_64-linux-gnu/perl*}
	ln -s usr/lib "$dir/lib"
	ln -s usr/lib64 "$dir/lib64"
	base "$dir"
	program "$dir" bash
	mkdir -p "$dir/var/lib/mysql" "$dir/run/mysqld"
	chown 999:999 "$dir/var/lib/mysql" "$dir/run/mysqld"
	install "$root/tests/compose/standin/mysql9.sh" "$dir/entrypoint.sh"
	finish "$dir" "$(image mysql)" 'ENV PATH=/bin:/usr/bin:/usr/sbin' 'ENTRYPOINT ["/entrypoint.sh"]' 'CMD ["mysqld"]'
}

server_mariadb() {
	local dir=$work/rootfs name
	base "$dir"
	for name in mariadbd mariadb mariadb-admin mariadb-install-db my_print_defaults resolveip; do program "$dir" "$name"; done
	for name in mariadb mariadb-admin mariadb-install-db my_print_defaults resolveip mariadbd; do
		[[ -e $dir/usr/bin/$name ]] || ln -sf "/bin/$name" "$dir/usr/bin/$name"
	done
	ln -sf mariadb "$dir/bin/mysql"
	ln -sf mariadb-admin "$dir/bin/mysqladmin"
	mkdir -p "$dir/usr/share" "$dir/usr/lib/mysql" "$dir/var/lib/mysql" "$dir/run/mysqld"
	cp -r /usr/share/mysql "$dir/usr/share/"
	cp -r /usr/lib/mysql/plugin "$dir/usr/lib/mysql/"
	chown 999:999 "$dir/var/lib/mysql" "$dir/run/mysqld"
	install "$root/tests/compose/standin/mysql.sh" "$dir/entrypoint.sh"
	finish "$dir" "$(image mysql)" 'ENV PATH=/bin:/usr/bin:/usr/sbin' 'ENTRYPOINT ["/entrypoint.sh"]' 'CMD ["mysqld"]'
}

standin_mysql() {
	local dir=$work/rootfs
	if mysql9; then server_mysql9; else server_mariadb; fi

	base "$dir"
	program "$dir" prometheus-mysqld-exporter mysqld_exporter
	finish "$dir" "$(image mysqld-exporter)" 'ENV PATH=/bin' 'USER 65534' 'ENTRYPOINT ["/bin/mysqld_exporter"]'
}

# standin_exporters: those that Debian does not have, if the folder PROGRAMS has them.
standin_exporters() {
	local dir=$work/rootfs
	if [[ -x ${PROGRAMS:-}/yace ]]; then
		base "$dir"
		program "$dir" yace
		finish "$dir" "$(image '[^ ]*cloudwatch-exporter')" 'ENV PATH=/bin' 'USER 65534' 'ENTRYPOINT ["/bin/yace"]'
	fi
	if [[ -x ${PROGRAMS:-}/mongodb_exporter ]]; then
		install -D "$PROGRAMS/mongodb_exporter" "$dir/mongodb_exporter"
		finish "$dir" "$(base_image percona/mongodb_exporter)" 'USER 65535:65535' 'ENTRYPOINT ["/mongodb_exporter"]'
	fi
}

# standin_mariadb: Debian's MariaDB with Galera, with folders and users as in MariaDB's
# own image.
standin_mariadb() {
	local dir=$work/mariadb
	mkdir -p "$dir"
	install "$root/tests/compose/standin/mariadb.sh" "$dir/docker-entrypoint.sh"
	cat >"$dir/Dockerfile" <<-END
		FROM $(base_image debian)
		RUN groupadd -r -g 999 mysql && useradd -r -u 999 -g mysql --home-dir /var/lib/mysql mysql \
		 && apt-get update && apt-get install -y --no-install-recommends mariadb-server galera-4 rsync \
		 && rm -rf /var/lib/apt/lists/* /var/lib/mysql && mkdir -p /var/lib/mysql /run/mysqld /docker-entrypoint-initdb.d \
		 && chown mysql:mysql /var/lib/mysql /run/mysqld && sed -i 's/^bind-address/#&/' /etc/mysql/mariadb.conf.d/50-server.cnf
		COPY docker-entrypoint.sh /usr/local/bin/
		ENTRYPOINT ["docker-entrypoint.sh"]
		CMD ["mariadbd"]
	END
	docker build --network host --tag "$(image mariadb)" "$dir" >"$work/mariadb.log" 2>&1 || die "MariaDB's image: $(tail -n 5 "$work/mariadb.log")"
}
