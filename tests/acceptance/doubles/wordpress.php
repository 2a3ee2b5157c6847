<?php
// What WordPress, WooCommerce and Action Scheduler offer the plugin, as their documentation says, over real HTTP:
// php wordpress.php PLUGIN GIVEN. GIVEN is {"settings": …, "orders": …, "calls": [[hook, …arguments], …], "post": …}.
// Prints {"notes": …, "meta": …, "scheduled": […], "output": …}.
define('ABSPATH', __DIR__);
$given = json_decode($argv[2], true);
foreach ($given['settings'] as $name => $value) {
    define($name, $value);
}
$_POST = $given['post'] ?? [];
$hooks = $scheduled = $orders = [];

function add_action(string $hook, callable $call, int $priority = 10, int $arguments = 1): void
{
    $GLOBALS['hooks'][$hook][] = [$call, $arguments];
}
function add_filter(string $hook, callable $call, int $priority = 10, int $arguments = 1): void
{
    add_action($hook, $call, $priority, $arguments);
}
function esc_html(string $text): string { return htmlspecialchars($text, ENT_QUOTES); }
function esc_attr(string $text): string { return htmlspecialchars($text, ENT_QUOTES); }
function sanitize_text_field(string $text): string { return trim(strip_tags($text)); }
function wp_unslash(string $text): string { return stripslashes($text); }
function wp_json_encode($value): string { return json_encode($value); }
function get_current_user_id(): int { return $GLOBALS['given']['user'] ?? 0; }
function wc_get_price_decimals(): int { return $GLOBALS['given']['decimals'] ?? 2; }
function wp_enqueue_script(string $handle, string $src, array $needs, $version, $options): void
{
    $tag = "<script src='" . esc_attr($src) . "' id='$handle-js'></script>";
    foreach ($GLOBALS['hooks']['script_loader_tag'] as [$call]) {
        $tag = $call($tag, $handle);
    }
    echo $tag;
}
function wp_add_inline_script(string $handle, string $code, string $position): void
{
    echo "<script id='$handle-js-$position'>$code</script>";
}
function plugin_basename(string $file): string { return basename(dirname($file)) . '/' . basename($file); }
function __return_true(): bool { return true; }
if ($given['has_consent_api'] ?? false) {
    function wp_has_consent(string $category): bool { return false; }
}
function as_enqueue_async_action(string $hook, array $arguments, string $group): void
{
    $GLOBALS['scheduled'][] = [0, $hook, $arguments];
}
function as_schedule_single_action(int $at, string $hook, array $arguments, string $group): void
{
    $GLOBALS['scheduled'][] = [$at - time(), $hook, $arguments];
}
class WP_Error
{
    public function __construct(private string $message) {}
    public function get_error_message(): string { return $this->message; }
}
function is_wp_error($value): bool { return $value instanceof WP_Error; }
function wp_remote_post(string $url, array $asked)
{
    $lines = array_map(fn($name) => "$name: {$asked['headers'][$name]}", array_keys($asked['headers']));
    $context = stream_context_create(['http' => ['method' => 'POST', 'header' => implode("\r\n", $lines),
        'content' => $asked['body'], 'timeout' => $asked['timeout'], 'ignore_errors' => true]]);
    $body = @file_get_contents($url, false, $context);
    if ($body === false) {
        return new WP_Error('cURL error 7: Failed to connect');
    }
    preg_match('/^HTTP\S+ (\d+)/', $http_response_header[0], $found);
    return ['code' => (int) $found[1], 'body' => $body];
}
function wp_remote_retrieve_response_code(array $answer): int { return $answer['code']; }
function wp_remote_retrieve_body(array $answer): string { return $answer['body']; }
class WC_Order
{
    public array $notes = [];
    public function __construct(public array $row, public array $meta) {}
    public function get_meta(string $name) { return $this->meta[$name] ?? ''; }
    public function update_meta_data(string $name, $value): void { $this->meta[$name] = $value; }
    public function save_meta_data(): void {}
    public function add_order_note(string $note): void { $this->notes[] = $note; }
    public function get_customer_id(): int { return $this->row['customer'] ?? 0; }
    public function get_total(): string { return $this->row['total']; }
    public function get_total_refunded(): float { return (float) ($this->row['refunded'] ?? 0); }
    public function get_status(): string { return $this->row['status']; }
    public function get_currency(): string { return $this->row['currency']; }
    public function get_order_number(): string { return $this->row['number']; }
    public function get_date_created(): DateTime { return new DateTime($this->row['created']); }
    public function get_date_modified(): ?DateTime { return isset($this->row['modified']) ? new DateTime($this->row['modified']) : null; }
}
function wc_get_order(int $id) { return $GLOBALS['orders'][$id] ?? false; }

foreach ($given['orders'] ?? [] as $id => $row) {
    $orders[$id] = new WC_Order($row, $row['meta'] ?? []);
}
require $argv[1];
ob_start();
foreach ($given['calls'] as $called) {
    $hook = array_shift($called);
    foreach ($hooks[$hook] as [$call, $count]) {
        $call(...array_slice(array_map(fn($each) => is_array($each) ? $orders[$each['order']] : $each, $called), 0, $count));
    }
}
echo json_encode(['output' => ob_get_clean(), 'scheduled' => $scheduled,
    'notes' => array_map(fn($order) => $order->notes, $orders), 'meta' => array_map(fn($order) => $order->meta, $orders)]);
