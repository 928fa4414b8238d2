# streamcut with the kernels of the usual trainings compiled.
#   docker build -t streamcut .
#   docker run -v "$PWD:/data" streamcut info train.zarr
# Compiled for x86-64 processors with AVX2, or for any of another kind; others compile at first use. The container may run as any user.
FROM python:3.13-slim
ENV STREAMCUT_KERNELS=/opt/streamcut-kernels
COPY . /src
RUN pip install --no-cache-dir "/src[remote,zstd]" \
    && rm -rf /src \
    && NUMBA_CACHE_DIR=/tmp/numba streamcut warm-up --into "$STREAMCUT_KERNELS" \
    && rm -rf /tmp/numba
WORKDIR /data
ENTRYPOINT ["streamcut"]
