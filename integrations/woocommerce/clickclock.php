<?php
/**
 * Plugin Name: clickclock for WooCommerce
 * Description: Puts the clickclock tag on every page, and sends orders and refunds to your collector until they are on disk.
 * Version: 1.0.0
 * Requires at least: 6.4
 * Requires PHP: 8.1
 * Requires Plugins: woocommerce
 * License: Apache-2.0
 *
 * Settings are constants in wp-config.php: CLICKCLOCK_URL, CLICKCLOCK_CLIENT_ID and, if the account's orders need a token,
 * CLICKCLOCK_ORDERS_TOKEN. docs/how-to/connect-woocommerce.md is for its users.
 *
 * Never stores the token in the database and never writes it to a log. Invariants: an order is sent whole, as it stands when it
 * is sent; a failed attempt is repeated by Action Scheduler; sending the same order again changes nothing in clickclock.
 */

if (!defined('ABSPATH')) {
    exit;
}

const CLICKCLOCK_SEND = 'clickclock_send_order';
const CLICKCLOCK_VISITOR = '_clickclock_visitor';
/** Seconds until the next attempt, by the number of the last; the last one counts for all that follow. */
const CLICKCLOCK_WAITS_S = [60, 300, 1800, 7200, 21600];
/** Some three weeks of attempts. After that the order has a note, and is sent again when it changes. */
const CLICKCLOCK_ATTEMPTS_MAX = 84;
/** Statuses of WooCommerce that are a sale. All others are not sent, unless the order was sent before. */
const CLICKCLOCK_SOLD = ['processing', 'completed', 'refunded'];

/** The tag waits for what the visitor says, on this page or on one before. A cached page asks the browser, too. */
const CLICKCLOCK_CONSENT = <<<'JS'
(function () {
  function start(said) {
    if (window.clickclock) clickclock.start(said);
  }
  function look() {
    if (window.wp_has_consent && wp_has_consent('marketing')) start('granted');
    else if (/(^|; )wp_consent_marketing=deny/.test(document.cookie)) start('denied');
  }
  addEventListener('load', look);
  document.addEventListener('wp_listen_for_consent_change', function (event) {
    var said = event.detail.marketing;
    if (said) start(said === 'allow' ? 'granted' : 'denied');
  });
})();
JS;

add_filter('wp_consent_api_registered_' . plugin_basename(__FILE__), '__return_true');
add_action('wp_enqueue_scripts', 'clickclock_enqueue');
add_filter('script_loader_tag', 'clickclock_attributes', 10, 2);
add_action('woocommerce_after_order_notes', 'clickclock_visitor_field');
add_action('woocommerce_checkout_create_order', 'clickclock_keep_visitor', 10, 1);
add_action('woocommerce_order_status_changed', 'clickclock_status_changed', 10, 4);
add_action('woocommerce_order_refunded', 'clickclock_refunded', 10, 1);
add_action(CLICKCLOCK_SEND, 'clickclock_send', 10, 2);
add_action('admin_notices', 'clickclock_notice');

/** The settings that are missing, by name. */
function clickclock_missing(): array
{
    return array_values(array_filter(
        ['CLICKCLOCK_URL', 'CLICKCLOCK_CLIENT_ID'],
        fn(string $name): bool => !defined($name) || constant($name) === ''
    ));
}

function clickclock_notice(): void
{
    if ($missing = clickclock_missing()) {
        echo '<div class="notice notice-error"><p>' . esc_html(
            'clickclock: define ' . implode(' and ', $missing) . ' in wp-config.php. No click and no order is sent until then.'
        ) . '</p></div>';
    }
}

function clickclock_enqueue(): void
{
    if (!clickclock_missing()) {
        wp_enqueue_script('clickclock', rtrim(CLICKCLOCK_URL, '/') . '/clickclock.js', [], null, ['strategy' => 'async']);
        if (clickclock_asks_consent()) {
            wp_add_inline_script('clickclock', CLICKCLOCK_CONSENT, 'before');
        }
    }
}

/** Whether the site has a consent banner that speaks by the WP Consent API. */
function clickclock_asks_consent(): bool
{
    return function_exists('wp_has_consent');
}

function clickclock_attributes(string $tag, string $handle): string
{
    if ($handle !== 'clickclock') {
        return $tag;
    }
    $attributes = ' data-client-id="' . esc_attr(CLICKCLOCK_CLIENT_ID) . '"';
    if (clickclock_asks_consent()) {
        $attributes .= ' data-wait';
    }
    if ($customer = get_current_user_id()) {
        $attributes .= ' data-customer-id="' . esc_attr((string) $customer) . '"';
    }
    return str_replace(' src=', $attributes . ' src=', $tag);
}

/** The checkout's form carries the visitor that the tag knows, so that the order finds its clicks. */
function clickclock_visitor_field(): void
{
    echo '<input type="hidden" name="clickclock_visitor" id="clickclock_visitor">'
        . '<script>addEventListener("load",function(){var c=window.clickclock;'
        . 'if(c&&c.id)document.getElementById("clickclock_visitor").value=c.id});</script>';
}

function clickclock_keep_visitor(WC_Order $order): void
{
    $visitor = isset($_POST['clickclock_visitor']) ? sanitize_text_field(wp_unslash($_POST['clickclock_visitor'])) : '';
    if ($visitor !== '') {
        $order->update_meta_data(CLICKCLOCK_VISITOR, substr($visitor, 0, 256));
    }
}

function clickclock_status_changed(int $order_id, string $from, string $to, WC_Order $order): void
{
    if (in_array($to, CLICKCLOCK_SOLD, true) || $order->get_meta('_clickclock_sent') !== '') {
        as_enqueue_async_action(CLICKCLOCK_SEND, [$order_id, 1], 'clickclock');
    }
}

function clickclock_refunded(int $order_id): void
{
    as_enqueue_async_action(CLICKCLOCK_SEND, [$order_id, 1], 'clickclock');
}

/** The order as `POST /orders` wants it; null if nothing in it could find a click. */
function clickclock_order(WC_Order $order): ?array
{
    $visitor = $order->get_meta(CLICKCLOCK_VISITOR);
    $customer = $order->get_customer_id();
    if ($visitor === '' && !$customer) {
        return null;
    }
    $total = clickclock_amount($order->get_total());
    $refunded = clickclock_amount($order->get_total_refunded());
    $status = 'completed';
    if (in_array($order->get_status(), ['cancelled', 'failed'], true)) {
        $status = 'cancelled';
    } elseif ($order->get_status() === 'refunded' || ($refunded === $total && (float) $total > 0)) {
        $status = 'refunded';
    } elseif ((float) $refunded > 0) {
        $status = 'partially_refunded';
    }
    $changed = $status === 'completed' ? $order->get_date_created() : ($order->get_date_modified() ?? $order->get_date_created());
    $said = [
        'client_id' => CLICKCLOCK_CLIENT_ID,
        'order_id' => (string) $order->get_order_number(),
        'event_time' => $changed->getTimestamp() * 1000,
        'amount' => $total,
        'currency' => $order->get_currency(),
        'status' => $status,
    ];
    if ($visitor !== '') {
        $said['cli_ubid'] = $visitor;
    }
    if ($customer) {
        $said['customer_id'] = (string) $customer;
    }
    if ($status === 'partially_refunded') {
        $said['refunded_amount'] = $refunded;
    }
    return $said;
}

/** An amount as text with the shop's number of decimals; WooCommerce gives text or a float. */
function clickclock_amount($value): string
{
    return number_format((float) $value, wc_get_price_decimals(), '.', '');
}

/** Send one order. Action Scheduler calls this; after a failure it calls it again, later. */
function clickclock_send(int $order_id, int $attempt): void
{
    $order = wc_get_order($order_id);
    if (!$order || clickclock_missing()) {
        return;
    }
    $said = clickclock_order($order);
    if ($said === null) {
        $order->add_order_note('clickclock: not sent, because neither the visitor nor the customer is known.');
        return;
    }
    $headers = ['Content-Type' => 'application/json'];
    if (defined('CLICKCLOCK_ORDERS_TOKEN') && CLICKCLOCK_ORDERS_TOKEN !== '') {
        $headers['Authorization'] = 'Bearer ' . CLICKCLOCK_ORDERS_TOKEN;
    }
    $answer = wp_remote_post(
        rtrim(CLICKCLOCK_URL, '/') . '/orders',
        ['headers' => $headers, 'body' => wp_json_encode($said), 'timeout' => 10, 'redirection' => 0]
    );
    $code = is_wp_error($answer) ? 0 : (int) wp_remote_retrieve_response_code($answer);
    if ($code === 202) {
        $order->update_meta_data('_clickclock_sent', (string) time());
        $order->save_meta_data();
        return;
    }
    $why = $code ? 'HTTP ' . $code . ': ' . clickclock_sentence(wp_remote_retrieve_body($answer)) : $answer->get_error_message();
    if (in_array($code, [400, 413, 422], true) || $attempt >= CLICKCLOCK_ATTEMPTS_MAX) {
        // The collector has read this order and refuses it: the same again would be refused again.
        $order->add_order_note('clickclock: the order was refused. ' . $why);
        return;
    }
    if ($attempt === 1) {
        $order->add_order_note('clickclock: the order could not be sent yet, and is sent again. ' . $why);
    }
    $wait_s = CLICKCLOCK_WAITS_S[min($attempt, count(CLICKCLOCK_WAITS_S)) - 1];
    as_schedule_single_action(time() + $wait_s, CLICKCLOCK_SEND, [$order_id, $attempt + 1], 'clickclock');
}

/** The collector's own words, if it said any. */
function clickclock_sentence(string $body): string
{
    $told = json_decode($body, true);
    $faults = is_array($told) ? array_column($told['errors'] ?? [], 'message') : [];
    return substr($faults ? implode(' ', $faults) : ($told['message'] ?? $body), 0, 500);
}
