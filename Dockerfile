# pqadmin's site and command line, with FoundationDB's client library.
#
#     docker build --tag pqadmin .
#     docker run --init --publish 127.0.0.1:8000:8000 --volume pqadmin:/var/lib/pqadmin pqadmin
#
# Not run in a container where it was written (there was no engine): docs/how-to/deployment.md says what was run instead.

FROM foundationdb/foundationdb:7.3.79@sha256:d3530c3066f94abffb61facac527c9c3517f6553ee0e75efa69d54296290156a AS foundationdb

FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# pip and the build tools have an environment of their own; the one that the image gets holds what runs, and no pip.
RUN python -m venv /opt/build && python -m venv --without-pip /opt/pqadmin
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN /opt/build/bin/python -m pip install --require-hashes --requirement requirements-build.lock \
    && /opt/build/bin/python -m pip --python /opt/pqadmin/bin/python install --require-hashes --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY queues queues
COPY pqadmin pqadmin
COPY templates templates
COPY static static
# The build backend is locked as well, so nothing is downloaded here.
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/build/bin/python -m pip --python /opt/pqadmin/bin/python install --no-deps /wheel/*.whl

FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
LABEL org.opencontainers.image.title="pqadmin" \
      org.opencontainers.image.description="Durable double-ended priority queues with a live operations dashboard" \
      org.opencontainers.image.licenses="Apache-2.0"
# The base image's own pip and its build tools are not needed to run anything.
RUN python -m pip uninstall --yes --quiet pip setuptools wheel \
    && rm -r /usr/local/lib/python3.11/ensurepip
RUN groupadd --system --gid 10001 pqadmin \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/pqadmin \
        --shell /usr/sbin/nologin pqadmin \
    && install --directory --owner 10001 --group 10001 --mode 0700 /var/lib/pqadmin
COPY --from=foundationdb /usr/lib/libfdb_c.so /usr/lib/libfdb_c.so
COPY --from=build /opt/pqadmin /opt/pqadmin
COPY deploy/ready.py /opt/pqadmin/ready.py
ENV PATH=/opt/pqadmin/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PQADMIN_HOST=0.0.0.0 \
    PQADMIN_DATA=/var/lib/pqadmin
# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
WORKDIR /var/lib/pqadmin
VOLUME /var/lib/pqadmin
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=8s --start-period=60s --retries=3 CMD ["python", "/opt/pqadmin/ready.py"]
ENTRYPOINT ["pqadmin"]
CMD ["serve"]
