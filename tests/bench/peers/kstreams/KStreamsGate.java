import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Peer `kstreams`: the simplified gate on Kafka Streams. Two co-partitioned topics, one key-value store with its
 * changelog, exactly_once_v2. Settings come from BENCH_*; those that a variant does not name are below.
 */
public final class KStreamsGate {
    private static final String OPEN = "open";
    private static final String EVENTS = "events";
    private static final String RUNS = "runs";
    private static final ObjectMapper JSON = new ObjectMapper();

    private KStreamsGate() {}

    public static void main(String[] arguments) throws InterruptedException {
        String prefix = System.getenv("BENCH_PREFIX");
        KafkaStreams streams = new KafkaStreams(topology(prefix), settings(prefix));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(20));
            closed.countDown();
        }));
        streams.start();
        closed.await();
    }

    private static Topology topology(String prefix) {
        String inputs = prefix + "inputs";
        var bytesIn = new ByteArrayDeserializer();
        var bytesOut = new ByteArraySerializer();
        return new Topology()
            .addSource("agent-events-source", bytesIn, bytesIn, prefix + "agent-events.default")
            .addSource("inputs-source", bytesIn, bytesIn, inputs)
            .addProcessor("gate", () -> new Gate(inputs), "agent-events-source", "inputs-source")
            .addStateStore(Stores.keyValueStoreBuilder(store(), Serdes.ByteArray(), Serdes.ByteArray()), "gate")
            .addSink(EVENTS, prefix + "events", bytesOut, bytesOut, "gate")
            .addSink(RUNS, prefix + "runs.default", bytesOut, bytesOut, "gate");
    }

    private static KeyValueBytesStoreSupplier store() {
        boolean onDisk = "rocks".equals(named("STORE", "memory"));
        return onDisk ? Stores.persistentKeyValueStore(OPEN) : Stores.inMemoryKeyValueStore(OPEN);
    }

    private static Properties settings(String prefix) {
        Properties settings = new Properties();
        settings.putAll(Map.of(
            StreamsConfig.APPLICATION_ID_CONFIG, prefix + "kstreams",
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, System.getenv("BENCH_BOOTSTRAP_SERVERS"),
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
            StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, named("COMMIT_MS", "100"),
            StreamsConfig.NUM_STREAM_THREADS_CONFIG, named("THREADS", "1"),
            StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0",
            StreamsConfig.REPLICATION_FACTOR_CONFIG, "1",
            StreamsConfig.STATE_DIR_CONFIG, System.getenv("BENCH_STATE_DIRECTORY")));
        settings.putAll(Map.of(
            StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest",
            StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), "2000",
            StreamsConfig.mainConsumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), "6000",
            StreamsConfig.mainConsumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), "1500",
            StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), "5",
            StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), "262144",
            StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG),
            named("TRANSACTION_TIMEOUT_MS", "10000")));
        String instance = named("INSTANCE", "bench");
        if (!instance.equals("none")) {
            settings.put(StreamsConfig.mainConsumerPrefix(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG), instance);
        }
        return settings;
    }

    private static String named(String name, String otherwise) {
        return System.getenv().getOrDefault("BENCH_" + name, otherwise);
    }

    /** Passes events, remembers what is open, lets through what answers it. */
    private static final class Gate implements Processor<byte[], byte[], byte[], byte[]> {
        private final String inputs;
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<byte[], byte[]> open;

        private Gate(String inputs) {
            this.inputs = inputs;
        }

        @Override
        public void init(ProcessorContext<byte[], byte[]> given) {
            context = given;
            open = given.getStateStore(OPEN);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            try {
                JsonNode value = JSON.readTree(record.value());
                boolean fromClients = context.recordMetadata().orElseThrow().topic().equals(inputs);
                if (fromClients) {
                    judgeInput(record, value);
                } else {
                    judgeEvent(record, value);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private void judgeEvent(Record<byte[], byte[]> record, JsonNode value) throws IOException {
            JsonNode outcome = value.path("outcome");
            boolean ends = value.path("type").asText().equals("RUN_FINISHED");
            if (ends && outcome.path("type").asText().equals("interrupt") && !outcome.path("interrupts").isEmpty()) {
                ObjectNode pause = JSON.createObjectNode();
                pause.set("runId", value.path("runId"));
                pause.set("interrupts", outcome.path("interrupts"));
                open.put(record.key(), JSON.writeValueAsBytes(pause));
            }
            context.forward(record, EVENTS);
        }

        private void judgeInput(Record<byte[], byte[]> record, JsonNode value) throws IOException {
            byte[] pause = open.get(record.key());
            if (pause != null) {
                Set<String> wanted = ids(JSON.readTree(pause).path("interrupts"), "id");
                JsonNode resume = value.path("resume");
                if (resume.size() != wanted.size() || !ids(resume, "interruptId").equals(wanted)) {
                    refuse(record, value);
                    return;
                }
                open.delete(record.key());
            }
            context.forward(record, RUNS);
        }

        private void refuse(Record<byte[], byte[]> record, JsonNode value) throws IOException {
            ObjectNode error = event("RUN_ERROR", value);
            error.put("code", "PENDING_INTERRUPTS").put("message", "Answer what is open.");
            for (ObjectNode told : List.of(event("RUN_STARTED", value), error)) {
                context.forward(record.withValue(JSON.writeValueAsBytes(told)), EVENTS);
            }
        }

        private static ObjectNode event(String type, JsonNode input) {
            ObjectNode event = JSON.createObjectNode().put("type", type);
            event.set("threadId", input.path("threadId"));
            event.set("runId", input.path("runId"));
            return event;
        }

        private static Set<String> ids(JsonNode list, String member) {
            Set<String> ids = new HashSet<>();
            list.forEach(one -> ids.add(one.path(member).asText()));
            return ids;
        }
    }
}
