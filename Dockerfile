# docker build -t fedtables . && docker run --rm fedtables
# The first table, on a CPU: DLAD's Table II on the digits that come with scikit-learn. To keep results and cache:
#   docker run --rm -v fedtables:/home/fedtables fedtables reproduce dlad/table2
FROM python:3.11-slim
ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1
WORKDIR /opt/fedtables
COPY constraints.txt ./
RUN pip install --index-url https://download.pytorch.org/whl/cpu \
    $(grep -E '^(torch|torchvision)==' constraints.txt)
COPY . .
RUN pip install -c constraints.txt .
RUN useradd --create-home fedtables
USER fedtables
WORKDIR /home/fedtables
ENTRYPOINT ["fedtables"]
CMD ["reproduce", "dlad/table2"]
