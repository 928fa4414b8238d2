# streamcut with the kernels of the usual trainings compiled.
#   docker build -t streamcut .
#   docker run -v "$PWD:/data" streamcut info train.zarr
# Compiled for x86-64 processors with AVX2, or for any of another kind; others compile at first use. The container may run as any user.
FROM python:3.13-slim
COPY . /src
RUN pip install --no-cache-dir "/src[remote]" \
    && pip wheel --no-cache-dir --no-deps --wheel-dir /tmp/plain /src \
    && python /src/scripts/tools/build_wheel.py /tmp/plain/*.whl --into /tmp/dist --kinds 1 \
    && pip install --no-cache-dir --no-deps --force-reinstall /tmp/dist/*.whl \
    && rm -rf /src /tmp/plain /tmp/dist
WORKDIR /data
ENTRYPOINT ["streamcut"]
